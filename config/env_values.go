package config

import (
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"writ"
)

// The formats of variables, as the contract has them. Each sets what it is given and
// answers what was wanted, empty when the value is good.

const (
	wantNumber  = "a whole number, in decimal digits"
	wantMillis  = "a whole number of milliseconds"
	wantSeconds = "a whole number of seconds"
)

// integer takes decimal digits, and a sign where the key has a bound that says no.
func integer[T ~int | ~int64](dst *T, v string) string {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || int64(T(n)) != n {
		return wantNumber
	}
	*dst = T(n)
	return ""
}

func whole64(field func(*Config) *int64) func(*Config, string) string {
	return func(c *Config, v string) string { return integer(field(c), v) }
}

func millis(field func(*Config) *int64) func(*Config, string) string {
	return duration(field, time.Millisecond, wantMillis)
}

func seconds(field func(*Config) *int64) func(*Config, string) string {
	return duration(field, time.Second, wantSeconds)
}

// hours takes a number of hours, with decimals or without.
func hours(field func(*Config) *time.Duration) func(*Config, string) string {
	return func(c *Config, v string) string {
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || strings.ContainsAny(v, "xXpP_") || !(n >= 0 && n <= math.MaxInt64/float64(2*time.Hour)) {
			return "a number of hours"
		}
		*field(c) = time.Duration(n * float64(time.Hour))
		return ""
	}
}

// capped takes a number of seconds, of which the contract lets no more than most count.
func capped(field func(*Config) *time.Duration, most time.Duration) func(*Config, string) string {
	set := seconds(func(c *Config) *int64 { return (*int64)(field(c)) })
	return func(c *Config, v string) string {
		want := set(c, v)
		*field(c) = min(*field(c), most)
		return want
	}
}

// duration takes a number of units for a time.Duration.
func duration(field func(*Config) *int64, unit time.Duration, want string) func(*Config, string) string {
	return func(c *Config, v string) string {
		var n int64
		if integer(&n, v) != "" || n < 0 || n > math.MaxInt64/int64(unit) {
			return want
		}
		*field(c) = n * int64(unit)
		return ""
	}
}

func boolean(dst *bool, v string) string {
	switch v {
	case "true":
		*dst = true
	case "false":
		*dst = false
	default:
		return "true or false"
	}
	return ""
}

func truth(field func(*Config) *bool) func(*Config, string) string {
	return func(c *Config, v string) string { return boolean(field(c), v) }
}

func word(field func(*Config) *string) func(*Config, string) string {
	return func(c *Config, v string) string {
		*field(c) = v
		return ""
	}
}

func secret(field func(*Config) *writ.Secret) func(*Config, string) string {
	return func(c *Config, v string) string {
		*field(c) = writ.Secret(v)
		return ""
	}
}

// commaList leaves empty elements out.
func commaList(v string) []string {
	list := strings.Split(v, ",")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// setPort keeps the host that is there.
func setPort(c *Config, v string) string {
	var port int
	if integer(&port, v) != "" || port < 0 || port > 65535 {
		return "a port, 0 to 65535"
	}
	host, _, err := net.SplitHostPort(c.Interpreter.Listen)
	if err != nil {
		host = "127.0.0.1"
	}
	c.Interpreter.Listen = net.JoinHostPort(host, v)
	return ""
}

var sizePattern = regexp.MustCompile(`(?i)^([0-9]{1,15})(\.[0-9]{1,6})?\s*(b|kb|mb|gb)?$`)

// httpSize takes "50mb", in steps of 1024, or bytes.
func httpSize(dst *int64, v string) string {
	m := sizePattern.FindStringSubmatch(v)
	if m == nil {
		return `bytes, or a size such as "50mb"`
	}
	n, err := strconv.ParseFloat(m[1]+m[2], 64)
	if err != nil {
		return `bytes, or a size such as "50mb"`
	}
	*dst = int64(n * float64(int64(1)<<map[string]int{"kb": 10, "mb": 20, "gb": 30}[strings.ToLower(m[3])]))
	return ""
}

// planLimits takes {"pro": {"run_memory_limit": 536870912, "max_file_size": 104857600}}.
// A key that is unknown is a fault: the limit that was meant would not hold.
func planLimits(dst *[]Plan, v string) string {
	var plans map[string]struct {
		Memory *int64 `json:"run_memory_limit"`
		File   *int64 `json:"max_file_size"`
	}
	if err := json.Unmarshal([]byte(v), &plans, json.RejectUnknownMembers(true)); err != nil {
		return `JSON such as {"pro": {"run_memory_limit": 536870912, "max_file_size": 104857600}}, in bytes`
	}
	out := []Plan{}
	for id, p := range plans {
		plan := Plan{ID: id}
		for dst, from := range map[*int64]*int64{&plan.MemoryBytes: p.Memory, &plan.FileBytes: p.File} {
			if from != nil {
				if *from <= 0 {
					return "limits of plans above 0"
				}
				*dst = *from
			}
		}
		out = append(out, plan)
	}
	slices.SortFunc(out, func(a, b Plan) int { return strings.Compare(a.ID, b.ID) })
	*dst = out
	return ""
}

// pemText is v with its lines, which people write as \n where a line cannot be.
func pemText(v string) string {
	if strings.HasPrefix(v, "-----BEGIN") && !strings.Contains(v, "\n") {
		return strings.ReplaceAll(v, `\n`, "\n")
	}
	return v
}
