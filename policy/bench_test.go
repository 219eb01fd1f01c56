package policy

import (
	"fmt"
	"strings"
	"testing"
)

// The aim is less than 50 µs for 20 policies.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{10, 20, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var src strings.Builder
			src.WriteString(permitAll)
			for i := range n - 1 {
				fmt.Fprintf(&src, "@id(\"r%d\") forbid (principal in Role::\"r%d\", action == Action::\"run\", resource in Scope::\"python\")\n"+
					"when { context.code_bytes > %d && context.limits.wall_ms > 10 };\n", i, i%2, i)
			}
			s, r := compile(b, src.String()), python()
			r.Principal.Roles = []string{"r0", "dev"}
			b.ReportAllocs()
			for b.Loop() {
				s.Decide(r)
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	src := filesOf(strings.Repeat("forbid (principal in Role::\"r\", action, resource) when { context.code_bytes > 1 && context.limits.wall_ms > 10 };\n", 100))
	for b.Loop() {
		if _, err := Compile(src); err != nil {
			b.Fatal(err)
		}
	}
}

// The most commands that a line is read as, each with the whole line's facts.
func BenchmarkDecideCommand(b *testing.B) {
	set := compile(b, defaultRules)
	for _, n := range []int{1, 10, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var text strings.Builder
			for i := range n {
				fmt.Fprintf(&text, "program%d x; ", i)
			}
			for b.Loop() {
				r, commands := executing("bash", "-c", text.String())
				set.DecideCommand(r, commands)
			}
		})
	}
}
