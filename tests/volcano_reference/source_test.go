package main

import (
	"strings"
	"testing"
)

const sample = `package sample

import (
	"math/rand"
	"sort"
)

type thing struct{ values map[string]int }

func (t *thing) Each() error {
	for _, value := range t.values {
		sort.Ints([]int{value})
	}
	for key := range t.values {
		_ = key
	}
	func() {
		for _, value := range t.values {
			_ = value
		}
	}()
	for key, value := range t.values {
		t.values[key] = value
	}
	return nil
}

func pick(count int) int { return rand.Intn(count) }
`

func TestChangesAreMadeInTheFunctionThatTheyName(t *testing.T) {
	text, err := file{
		path: "sample.go", imports: []string{"example.com/canonical"}, unused: []string{"math/rand"},
		changes: []change{
			walk("thing.Each", "t.values", "canonical.ByKey", 2),
			walkKeys("thing.Each", "t.values", "canonical.Keys", 1),
			call("pick", "rand.Intn", "canonical.First"),
			first("pick", "begin()"),
			last("thing.Each", "tell()"),
		},
	}.apply([]byte(sample))
	if err != nil {
		t.Fatal(err)
	}
	changed := string(text)
	for part, times := range map[string]int{
		"range canonical.ByKey(t.values) {":                                        2,
		"for key := range t.values {":                                              1,
		"return canonical.First(count)":                                            1,
		"for _, key := range canonical.Keys(t.values) {\nvalue := t.values[key]\n": 1,
		`_ "math/rand"`: 1,
		"package sample\n\nimport (\n\t\"example.com/cano": 1,
		"func pick(count int) int {\n\tbegin()\n":          1,
		"\ttell()\n\treturn nil\n}":                        1,
	} {
		if found := strings.Count(changed, part); found != times {
			t.Errorf("%q is there %d times, not %d:\n%s", part, found, times, changed)
		}
	}
}

func TestChangesThatDoNotMatchAreRefused(t *testing.T) {
	for name, each := range map[string]struct {
		file file
		want string
	}{
		"another number of loops":   {file{changes: []change{walk("thing.Each", "t.values", "f", 1)}}, "2 times, not 1"},
		"no such loop":              {file{changes: []change{walk("thing.Each", "t.others", "f", 1)}}, "0 times, not 1"},
		"no such call":              {file{changes: []change{call("pick", "rand.Int63", "f")}}, "0 times, not 1"},
		"no such function":          {file{changes: []change{first("thing.pick", "f()")}}, "0 functions"},
		"another end of a function": {file{changes: []change{last("pick", "f()")}}, "ends with"},
		"no such import":            {file{unused: []string{"math"}}, "no import of math"},
		"the same place twice": {
			file{changes: []change{call("pick", "rand.Intn", "f"), call("pick", "rand.Intn", "g")}}, "two changes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			each.file.path = "sample.go"
			if _, err := each.file.apply([]byte(sample)); err == nil || !strings.Contains(err.Error(), each.want) {
				t.Errorf("%v, not %q", err, each.want)
			}
		})
	}
}
