package main

import "syscall"

// childAttributes make a component end when this program is killed, and keep a terminal's interrupt from it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
