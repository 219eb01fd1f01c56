package rest

import "context"

// Operations is every route of the API as "METHOD /path".
func Operations() []string {
	var out []string
	for _, rt := range new(API).routes(context.Background()) {
		out = append(out, rt.method+" "+rt.path)
	}
	return out
}

// Document is the OpenAPI document.
func Document() []byte { return document }
