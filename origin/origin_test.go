package origin

import "testing"

func TestCP10_KnownHosts(t *testing.T) {
	for header, want := range map[string]bool{
		"localhost": true, "LOCALHOST:8740": true, "127.0.0.1:1": true, "127.9.9.9": true, "[::1]:1": true, "::1": true, "[::1]": true,
		"writ.example.org": true, "Writ.Example.ORG:443": true,
		"": false, ":80": false, "evil.test": false, "localhost.evil.test": false, "127.0.0.1.evil.test": false, "192.0.2.1": false,
		"writ.example.org.evil.test": false, "[::2]": false, "0.0.0.0": false,
	} {
		if got := Known(header, []string{"writ.example.org"}); got != want {
			t.Errorf("Known(%q) = %v", header, got)
		}
	}
	for header, want := range map[string]bool{"192.0.2.1:80": true, "[2001:db8::1]": true, "evil.test": false, "": false} {
		if got := Known(header, []string{"0.0.0.0"}); got != want {
			t.Errorf("on every address: Known(%q) = %v", header, got)
		}
	}
}

func TestCP10_ForeignPages(t *testing.T) {
	for name, tt := range map[string]struct {
		origins []string
		site    string
		want    bool
	}{
		"a program":                        {nil, "", false},
		"our own page":                     {[]string{"http://localhost:8740"}, "same-origin", false},
		"another port of ours":             {[]string{"http://localhost:1"}, "same-site", true},
		"another site":                     {[]string{"https://evil.test"}, "cross-site", true},
		"another site without an origin":   {nil, "cross-site", true},
		"a page of a file":                 {[]string{"null"}, "", true},
		"no origin at all":                 {[]string{""}, "", true},
		"ours and another":                 {[]string{"http://localhost:8740", "https://evil.test"}, "", true},
		"one that is allowed":              {[]string{"https://app.example.org"}, "cross-site", false},
		"allowed and another":              {[]string{"https://app.example.org", "https://evil.test"}, "cross-site", true},
		"ours, but the browser says other": {[]string{"http://localhost:8740"}, "cross-site", true},
	} {
		values := func(h string) []string {
			switch {
			case h == "Origin":
				return tt.origins
			case h == "Sec-Fetch-Site" && tt.site != "":
				return []string{tt.site}
			}
			return nil
		}
		if got := Foreign("localhost:8740", values, []string{"https://app.example.org"}); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
