package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// file is a file of the genuine scheduler with what is changed in it.
type file struct {
	path    string
	imports []string
	// unused are imports that the changes leave without a use.
	unused  []string
	changes []change
}

// change is one change within a function. It fails unless it finds just what it expects.
type change func(*source) error

// source is a file while it is changed.
type source struct {
	text   []byte
	parsed *ast.File
	edits  []edit
}

// edit replaces the bytes from start up to end.
type edit struct {
	start, end int
	text       string
}

func (f file) patch(folder string) error {
	path := filepath.Join(folder, f.path)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	changed, err := f.apply(text)
	if err != nil {
		return err
	}
	return os.WriteFile(path, changed, 0o644)
}

// apply returns the file's text with all changes made.
func (f file) apply(text []byte) ([]byte, error) {
	// Positions of a file set count from its base; with one file of a known size they are offsets plus one.
	parsed, err := parser.ParseFile(token.NewFileSet(), f.path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &source{text: text, parsed: parsed}
	for _, apply := range f.changes {
		if err := apply(s); err != nil {
			return nil, err
		}
	}
	for _, path := range f.unused {
		if err := s.blankImport(path); err != nil {
			return nil, err
		}
	}
	if len(f.imports) > 0 {
		end := offset(parsed.Name.End())
		s.edits = append(s.edits, edit{end, end, "\n\nimport (\n\t\"" + strings.Join(f.imports, "\"\n\t\"") + "\"\n)\n"})
	}
	return s.result()
}

func (s *source) result() ([]byte, error) {
	slices.SortStableFunc(s.edits, func(a, b edit) int { return a.start - b.start })
	var changed []byte
	at := 0
	for _, each := range s.edits {
		if each.start < at {
			return nil, fmt.Errorf("two changes of %q", s.text[each.start:each.end])
		}
		changed = append(changed, s.text[at:each.start]...)
		changed = append(changed, each.text...)
		at = each.end
	}
	return append(changed, s.text[at:]...), nil
}

func (s *source) blankImport(path string) error {
	for _, spec := range s.parsed.Imports {
		if spec.Path.Value == `"`+path+`"` && spec.Name == nil {
			start := offset(spec.Pos())
			s.edits = append(s.edits, edit{start, start, "_ "})
			return nil
		}
	}
	return fmt.Errorf("no import of %s", path)
}

// function finds a function by its name, a method by its receiver's type and its name.
func (s *source) function(name string) (*ast.FuncDecl, error) {
	var found []*ast.FuncDecl
	for _, declaration := range s.parsed.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		full := function.Name.Name
		if function.Recv != nil {
			full = strings.TrimPrefix(s.slice(function.Recv.List[0].Type), "*") + "." + full
		}
		if full == name {
			found = append(found, function)
		}
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d functions %s", len(found), name)
	}
	return found[0], nil
}

func (s *source) slice(node ast.Node) string {
	return string(s.text[offset(node.Pos()):offset(node.End())])
}

func offset(position token.Pos) int { return int(position) - 1 }

// walk makes a function's loops over a map, written as expression, go over order(expression). There are times of them.
func walk(function, expression, order string, times int) change {
	return func(s *source) error {
		in, err := s.function(function)
		if err != nil {
			return err
		}
		found := 0
		ast.Inspect(in, func(node ast.Node) bool {
			loop, ok := node.(*ast.RangeStmt)
			if !ok || s.slice(loop.X) != expression {
				return true
			}
			if key, ok := loop.Key.(*ast.Ident); !ok || key.Name != "_" {
				return true
			}
			found++
			s.edits = append(s.edits, edit{offset(loop.X.Pos()), offset(loop.X.End()), order + "(" + expression + ")"})
			return true
		})
		return expected(found, times, function, expression)
	}
}

// walkKeys does the same to loops over a map's keys and values.
func walkKeys(function, expression, order string, times int) change {
	return func(s *source) error {
		in, err := s.function(function)
		if err != nil {
			return err
		}
		found := 0
		ast.Inspect(in, func(node ast.Node) bool {
			loop, ok := node.(*ast.RangeStmt)
			if !ok || s.slice(loop.X) != expression || loop.Value == nil || s.slice(loop.Key) == "_" {
				return true
			}
			found++
			key, value := s.slice(loop.Key), s.slice(loop.Value)
			body := offset(loop.Body.Lbrace) + 1
			s.edits = append(s.edits,
				edit{offset(loop.Key.Pos()), offset(loop.X.End()), "_, " + key + " := range " + order + "(" + expression + ")"},
				edit{body, body, "\n" + value + " := " + expression + "[" + key + "]"},
			)
			return true
		})
		return expected(found, times, function, expression)
	}
}

// call makes a function call another one in place of a third.
func call(function, genuine, ours string) change {
	return func(s *source) error {
		in, err := s.function(function)
		if err != nil {
			return err
		}
		found := 0
		ast.Inspect(in, func(node ast.Node) bool {
			if called, ok := node.(*ast.CallExpr); ok && s.slice(called.Fun) == genuine {
				found++
				s.edits = append(s.edits, edit{offset(called.Fun.Pos()), offset(called.Fun.End()), ours})
			}
			return true
		})
		return expected(found, 1, function, genuine)
	}
}

// first puts a statement at a function's start.
func first(function, statement string) change {
	return func(s *source) error {
		in, err := s.function(function)
		if err != nil {
			return err
		}
		start := offset(in.Body.Lbrace) + 1
		s.edits = append(s.edits, edit{start, start, "\n\t" + statement + "\n"})
		return nil
	}
}

// last puts a statement before the one with which a function returns that no error was found.
func last(function, statement string) change {
	return func(s *source) error {
		in, err := s.function(function)
		if err != nil {
			return err
		}
		end := in.Body.List[len(in.Body.List)-1]
		if text := s.slice(end); text != "return nil" {
			return fmt.Errorf("%s ends with %q", function, text)
		}
		start := offset(end.Pos())
		s.edits = append(s.edits, edit{start, start, statement + "\n\t"})
		return nil
	}
}

func expected(found, times int, function, text string) error {
	if found != times {
		return fmt.Errorf("%s has %s %d times, not %d", function, text, found, times)
	}
	return nil
}
