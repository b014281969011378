//go:build !linux

package main

import "syscall"

// childAttributes keep a terminal's interrupt from a component.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
