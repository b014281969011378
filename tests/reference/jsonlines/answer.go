// Package jsonlines has the loop of programs that answer queries: JSON lines in, JSON lines out.
package jsonlines

import (
	"bufio"
	"encoding/json"
	"io"
)

// Answer writes the answer to each line of the input, in its order. Whenever no more input waits, all answers so far
// are written out.
func Answer[T any](input io.Reader, output io.Writer, answer func(line []byte) T) error {
	lines := bufio.NewReaderSize(input, 1<<20)
	writer := bufio.NewWriterSize(output, 1<<16)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			if err := encoder.Encode(answer(line)); err != nil {
				return err
			}
			if lines.Buffered() == 0 {
				if err := writer.Flush(); err != nil {
					return err
				}
			}
		}
		if err == io.EOF {
			return writer.Flush()
		}
		if err != nil {
			return err
		}
	}
}
