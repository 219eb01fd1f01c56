package policy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	cedar "github.com/cedar-policy/cedar-go"

	"writ"
)

// MaxGrants is the most that @grants may ask for.
const MaxGrants = 16

const maxWhyBytes = 500

// annotations makes the rule of p, and reports every annotation that says nothing
// or says it in the wrong place.
func (c *compiler) annotations(file string, p *cedar.Policy, st statement) rule {
	start := st.start()
	r := rule{
		Rule:   writ.Rule{ID: fmt.Sprintf("%s:%d", file, start.line), File: file, Line: start.line, Effect: writ.Allow},
		policy: p,
	}
	permit := p.Effect() == cedar.Permit
	if !permit {
		r.Effect = writ.Deny
	}
	a := p.Annotations()
	_, holds := a["hold"]
	for _, k := range slices.Sorted(maps.Keys(a)) {
		key, v := string(k), string(a[k])
		fault := func(format string, args ...any) {
			c.fault(file, st.annotation(key), "@"+key+": "+fmt.Sprintf(format, args...))
		}
		if slices.Contains([]string{"grants", "require_reason", "approvers"}, key) && !holds && permit {
			fault("it has a meaning only beside @hold: add @hold(\"why a person must look\") or remove it")
		}
		if slices.Contains([]string{"hold", "grants", "require_reason", "approvers"}, key) && !permit {
			fault("a forbid denies and cannot hold: use permit, or remove it")
		}
		switch key {
		case "id":
			c.id(&r, v, st, fault)
		case "hold":
			r.Effect = writ.Hold
			r.why = v
			checkWhy(v, "why a person must look", fault)
		case "reason":
			r.why = v
			if permit {
				fault("it is for a forbid, and says why: on a permit use @hold, or remove it")
			}
			checkWhy(v, "why it is forbidden", fault)
		case "grants":
			n, err := strconv.Atoi(v)
			if err != nil || n < 1 || n > MaxGrants || strconv.Itoa(n) != v {
				fault("want a number from 1 to %d, have %q", MaxGrants, v)
			}
			r.need.Grants = n
		case "require_reason":
			if v != "true" && v != "false" {
				fault(`want "true" or "false", have %q`, v)
			}
			r.need.Reason = v == "true"
		case "approvers":
			for role := range strings.SplitSeq(v, ",") {
				role = strings.TrimSpace(role)
				if !writ.ValidName(role) {
					fault(`want role names with "," between them, have %q`, v)
					break
				}
				r.need.Roles = append(r.need.Roles, role)
			}
		default:
			fault("there is no such annotation: want id, hold, grants, require_reason, approvers or reason")
		}
	}
	if !permit {
		r.Effect = writ.Deny // also beside a faulty @hold
	}
	r.need.Grants = max(r.need.Grants, 1)
	return r
}

func (c *compiler) id(r *rule, v string, st statement, fault func(string, ...any)) {
	if !writ.ValidName(v) {
		fault("want 1 to 64 of A-Z a-z 0-9 _ . -, have %q", v)
		return
	}
	place := fmt.Sprintf("%s:%d", r.File, st.annotation("id").line)
	if other, taken := c.ids[v]; taken {
		fault("%q is the id of the rule at %s too: rename one", v, other)
		return
	}
	c.ids[v] = place
	r.ID = v
}

func checkWhy(v, what string, fault func(string, ...any)) {
	if strings.TrimSpace(v) == "" {
		fault("it is empty: say in words %s", what)
	}
	if len(v) > maxWhyBytes || !utf8.ValidString(v) {
		fault("want at most %d bytes of text, have %d", maxWhyBytes, len(v))
	}
}
