package policy

import _ "embed"

//go:embed default/10-default.cedar
var defaultRules string

//go:embed default/10-default.test.yaml
var defaultExamples string

// Default is the policy that writ starts with, to compile as it is or to write
// into a new policy folder.
func Default() []File {
	return []File{{Name: "10-default.cedar", Content: []byte(defaultRules)}}
}

// DefaultExamples are the examples that belong beside Default.
func DefaultExamples() []File {
	return []File{{Name: "10-default.test.yaml", Content: []byte(defaultExamples)}}
}
