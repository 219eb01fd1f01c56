package rest_test

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/google/go-cmp/cmp"

	"writ"
	"writ/rest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func load(t *testing.T) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(rest.Document())
	if err != nil {
		t.Fatalf("load openapi.yaml: %v", err)
	}
	return doc
}

func TestOpenAPIIsValid(t *testing.T) {
	if err := load(t).Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Error(err)
	}
}

// TestOpenAPIHasEveryRoute: the routes in the code are the paths in the document.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	var paths []string
	for path, item := range load(t).Paths.Map() {
		for method := range item.Operations() {
			paths = append(paths, method+" "+path)
		}
	}
	slices.Sort(paths)
	routes := rest.Operations()
	slices.Sort(routes)
	if diff := cmp.Diff(routes, paths); diff != "" {
		t.Errorf("routes (-) and paths of openapi.yaml (+) differ:\n%s", diff)
	}
}

// TestOpenAPIContract pins what the document promises: operations, parameters,
// answers, and the members of every schema. Run with -update after a deliberate
// change.
func TestOpenAPIContract(t *testing.T) {
	const golden = "testdata/contract.golden"
	got := contract(load(t))
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the contract changed (golden -, openapi.yaml +); -update if that is meant:\n%s", diff)
	}
}

// contract is doc as lines: one for each operation with what belongs to it, one
// for each schema and member.
func contract(doc *openapi3.T) string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		item := doc.Paths.Value(path)
		for _, method := range slices.Sorted(maps.Keys(item.Operations())) {
			op := item.Operations()[method]
			fmt.Fprintf(&b, "%s %s (%s)\n", method, path, op.OperationID)
			if op.Security != nil && len(*op.Security) == 0 {
				fmt.Fprintf(&b, "  open\n")
			}
			for _, p := range slices.Concat(item.Parameters, op.Parameters) {
				fmt.Fprintf(&b, "  %s %s: %s\n", p.Value.In, p.Value.Name, form(p.Value.Schema))
			}
			if op.RequestBody != nil {
				fmt.Fprintf(&b, "  body: %s\n", contents(op.RequestBody.Value.Content))
			}
			for _, code := range slices.Sorted(maps.Keys(op.Responses.Map())) {
				fmt.Fprintf(&b, "  %s: %s\n", code, contents(op.Responses.Value(code).Value.Content))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name].Value
		fmt.Fprintf(&b, "schema %s: %s\n", name, form(&openapi3.SchemaRef{Value: s}))
		for _, member := range slices.Sorted(maps.Keys(s.Properties)) {
			mark := ""
			if slices.Contains(s.Required, member) {
				mark = ", required"
			}
			fmt.Fprintf(&b, "  %s: %s%s\n", member, form(s.Properties[member]), mark)
		}
	}
	return b.String()
}

func contents(c openapi3.Content) string {
	var out []string
	for _, media := range slices.Sorted(maps.Keys(c)) {
		out = append(out, media+" "+form(c[media].Schema))
	}
	return strings.Join(out, "; ")
}

// form is a schema in a few words.
func form(s *openapi3.SchemaRef) string {
	if s.Ref != "" {
		return s.Ref[strings.LastIndex(s.Ref, "/")+1:]
	}
	v := s.Value
	out := strings.Join(v.Type.Slice(), "|")
	if v.Items != nil {
		out += " of " + form(v.Items)
	}
	for _, e := range v.Enum {
		out += fmt.Sprintf(" %v", e)
	}
	if v.Pattern != "" {
		out += " " + v.Pattern
	}
	if v.Min != nil {
		out += fmt.Sprintf(" min %.0f", *v.Min)
	}
	if v.Max != nil {
		out += fmt.Sprintf(" max %.0f", *v.Max)
	}
	return out
}

// TestOpenAPISchemasAreTheTypes: every schema has exactly the members of its Go
// type, and requires exactly those that are always there.
func TestOpenAPISchemasAreTheTypes(t *testing.T) {
	types := map[string]reflect.Type{}
	for _, v := range []any{
		writ.TaskRequest{}, writ.RunSpec{}, writ.Input{}, writ.Limits{}, writ.CancelRequest{}, writ.VoteRequest{},
		writ.VerifyRequest{}, writ.KeyRequest{}, writ.OperatorRequest{}, writ.Ref{}, writ.Rule{}, writ.Need{}, writ.Task{},
		writ.Result{}, writ.Output{}, writ.OutputFacts{}, writ.Enforcement{}, writ.TaskEvent{}, writ.Chunk{}, writ.Vote{},
		writ.Approval{}, writ.ApprovalView{}, writ.Event{}, writ.EventData{}, writ.Checkpoint{}, writ.AuditReport{},
		writ.AuditFault{}, writ.AuditProof{}, writ.Key{}, writ.NewKey{}, writ.Operator{},
		writ.HeldCall{}, writ.FileChange{}, writ.Workspace{}, writ.PathRules{}, writ.Operation{}, writ.PatchResult{}, writ.UndoRequest{},
		writ.Resumed{}, writ.Process{}, writ.Signal{},
		writ.Work{}, writ.Intent{}, writ.IntentRequest{}, writ.IntentEdit{}, writ.QueueRequest{}, writ.ReorderRequest{}, writ.StopRequest{}, writ.Stop{},
		writ.FileInput{}, writ.Collect{}, writ.OutputFile{}, writ.DroppedFile{}, writ.FileUsage{}, writ.FileRemoval{}, writ.FileRemovalRequest{},
		writ.Session{}, writ.SessionContents{}, writ.Object{}, writ.ObjectRef{},
	} {
		types[reflect.TypeOf(v).Name()] = reflect.TypeOf(v)
	}
	schemas := load(t).Components.Schemas
	for name, s := range schemas {
		if typ, ok := types[name]; ok {
			all, required := members(typ)
			if diff := cmp.Diff(all, slices.Sorted(maps.Keys(s.Value.Properties))); diff != "" {
				t.Errorf("%s: members of the Go type (-) and of the schema (+) differ:\n%s", name, diff)
			}
			if diff := cmp.Diff(required, slices.Sorted(slices.Values(s.Value.Required))); diff != "" {
				t.Errorf("%s: members that the Go type always has (-) and that the schema requires (+) differ:\n%s", name, diff)
			}
		} else if len(s.Value.Properties) > 0 && name != "Problem" && name != "Fault" {
			t.Errorf("schema %s has no Go type in this test", name)
		}
		delete(types, name)
	}
	for name := range types {
		t.Errorf("openapi.yaml has no schema %s", name)
	}
}

// TestOpenAPIEnumsAreTheLists: states, outcomes and kinds of the document are those
// of the vocabulary.
func TestOpenAPIEnumsAreTheLists(t *testing.T) {
	schemas := load(t).Components.Schemas
	kinds := schemas["Problem"].Value.Properties["kind"].Value
	for _, c := range []struct {
		name string
		s    *openapi3.Schema
		want string
	}{
		{"TaskState", schemas["TaskState"].Value, fmt.Sprint(writ.TaskStates)},
		{"Outcome", schemas["Outcome"].Value, fmt.Sprint(writ.Outcomes)},
		{"Problem.kind", kinds, fmt.Sprint(writ.Kinds)},
		{"ApprovalState", schemas["ApprovalState"].Value, fmt.Sprint(writ.ApprovalStates)},
		{"EventType", schemas["EventType"].Value, fmt.Sprint(writ.EventTypes)},
		{"WorkState", schemas["WorkState"].Value, fmt.Sprint(writ.WorkStates)},
		{"IntentState", schemas["IntentState"].Value, fmt.Sprint(writ.IntentStates)},
		{"Delivery", schemas["Delivery"].Value, fmt.Sprint(writ.Deliveries)},
	} {
		if got := fmt.Sprint(c.s.Enum); got != c.want {
			t.Errorf("%s: the document lists %s, the code %s", c.name, got, c.want)
		}
	}
}

// members is the JSON members of a struct type, and those that are always there.
func members(typ reflect.Type) (all, required []string) {
	for f := range typ.Fields() {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			a, r := members(f.Type)
			all, required = append(all, a...), append(required, r...)
			continue
		case name == "-":
			continue
		}
		all = append(all, name)
		if !strings.Contains(opts, "omit") {
			required = append(required, name)
		}
	}
	slices.Sort(all)
	slices.Sort(required)
	return all, required
}

// checked is h with every answer held against the document: its status, its
// content type, and that its body has no member that the document does not know.
func checked(t *testing.T, h http.Handler) http.Handler {
	doc := load(t)
	for _, s := range doc.Components.Schemas {
		if len(s.Value.Properties) > 0 {
			s.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: ptr(false)}
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tee := &tee{ResponseWriter: w, status: http.StatusOK}
		h.ServeHTTP(tee, r)
		method, path, found := strings.Cut(r.Pattern, " ")
		if !found { // no route: not in the document either
			return
		}
		if err := checkAnswer(doc, r, method, path, tee); err != nil {
			t.Errorf("%s %s answers %d against openapi.yaml: %v", r.Method, r.URL, tee.status, err)
		}
	})
}

func checkAnswer(doc *openapi3.T, r *http.Request, method, path string, got *tee) error {
	item := doc.Paths.Value(path)
	if item == nil || item.GetOperation(method) == nil {
		return fmt.Errorf("the document has no such operation")
	}
	answer := item.GetOperation(method).Responses.Status(got.status)
	if answer == nil && got.status < 400 {
		return fmt.Errorf("the document has no such answer")
	}
	media := got.Header().Get("Content-Type")
	return openapi3filter.ValidateResponse(r.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{
			Request: r,
			Route:   &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method)},
		},
		Status: got.status,
		Header: got.Header(),
		Body:   io.NopCloser(&got.body),
		Options: &openapi3filter.Options{
			IncludeResponseStatus: true,
			ExcludeResponseBody:   !strings.HasSuffix(media, "json") || media == "application/x-ndjson",
		},
	})
}

// tee keeps an answer that passes.
type tee struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
}

func (w *tee) Unwrap() http.ResponseWriter { return w.ResponseWriter }
func (w *tee) WriteHeader(code int)        { w.status = code; w.ResponseWriter.WriteHeader(code) }
func (w *tee) Write(b []byte) (int, error) {
	w.body.Write(b)
	return w.ResponseWriter.Write(b)
}
