// Command volcano-reference makes a copy of Volcano's module in a folder, with its map walks put in order and with the
// program of _added in it. It prints the module's version.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// unavailable is the exit status where the modules are not there, and cannot be fetched.
const unavailable = 3

const (
	module  = "volcano.sh/volcano"
	version = "v1.8.0"
	// sum is the module's checksum, as it stands in a go.sum.
	sum = "h1:x4WYSleHoQo5/3H1T7Xo7BGgL54CcR+1/RYqinyeFGk="
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run . FOLDER")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "volcano-reference:", err)
		var missing missingError
		if errors.As(err, &missing) {
			os.Exit(unavailable)
		}
		os.Exit(1)
	}
	fmt.Println(version)
}

func run(folder string) error {
	genuine, err := download()
	if err != nil {
		return err
	}
	for _, part := range []string{"go.mod", "go.sum", "cmd/scheduler", "pkg"} {
		if err := copyTree(filepath.Join(genuine, part), filepath.Join(folder, part)); err != nil {
			return err
		}
	}
	for _, file := range files {
		if err := file.patch(folder); err != nil {
			return fmt.Errorf("%s: %w", file.path, err)
		}
	}
	return copyTree("_added", folder)
}

// missingError says why the genuine module is not there.
type missingError string

func (e missingError) Error() string { return string(e) }

// download returns the folder of the genuine module, which is fetched where it is not there yet.
func download() (string, error) {
	var complaint bytes.Buffer
	command := exec.Command("go", "mod", "download", "-json", module+"@"+version)
	command.Stderr = &complaint
	output, err := command.Output()
	var answer struct{ Dir, Sum, Error string }
	if jsonErr := json.Unmarshal(output, &answer); jsonErr == nil && answer.Error != "" {
		return "", missingError(answer.Error)
	}
	if err != nil {
		return "", missingError(fmt.Sprintf("%s %s: %v: %s", module, version, err, strings.TrimSpace(complaint.String())))
	}
	if answer.Sum != sum {
		return "", fmt.Errorf("%s %s has the checksum %s, not %s", module, version, answer.Sum, sum)
	}
	return answer.Dir, nil
}

// copyTree copies a file, or a folder without its tests. What is there already is never replaced.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(path, "_test.go") {
			return err
		}
		relative, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, relative)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if _, err := os.Lstat(target); err == nil {
			return fmt.Errorf("%s is there already", target)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}
