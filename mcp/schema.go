package mcp

// object is a JSON Schema of an object, flat: no references and no alternatives,
// which some clients do not follow.
type object []property

type property struct {
	name     string
	optional bool
	schema   map[string]any
}

// schema is o as JSON Schema. Unknown properties are allowed and mean nothing.
func (o object) schema() map[string]any {
	props := map[string]any{}
	for _, p := range o {
		props[p.name] = p.schema
	}
	out := map[string]any{"type": "object", "properties": props}
	if req := o.required(); len(req) > 0 {
		out["required"] = req
	}
	return out
}

// required are the names of the properties that must be there.
func (o object) required() []string {
	var names []string
	for _, p := range o {
		if !p.optional {
			names = append(names, p.name)
		}
	}
	return names
}

func must(name string, schema map[string]any) property { return property{name, false, schema} }
func may(name string, schema map[string]any) property  { return property{name, true, schema} }

func typed(typ, description string) map[string]any {
	s := map[string]any{"type": typ}
	if description != "" {
		s["description"] = description
	}
	return s
}

func text(description string) map[string]any { return typed("string", description) }
func flag(description string) map[string]any { return typed("boolean", description) }

// count is a whole number from min to max; a max of 0 means none.
func count(min, max int, description string) map[string]any {
	s := typed("integer", description)
	s["minimum"] = min
	if max > 0 {
		s["maximum"] = max
	}
	return s
}

func oneOf(description string, values ...string) map[string]any {
	s := text(description)
	s["enum"] = values
	return s
}

// withMost is a string schema with at most max bytes. Schemas count characters: what is
// longer in bytes the tool refuses.
func withMost(max int, s map[string]any) map[string]any {
	s["maxLength"] = max
	return s
}

func listOf(items map[string]any, description string) map[string]any {
	s := typed("array", description)
	s["items"] = items
	return s
}

func mapOf(values map[string]any, description string) map[string]any {
	s := typed("object", description)
	s["additionalProperties"] = values
	return s
}

// within is o as the type of a property.
func (o object) within(description string) map[string]any {
	s := o.schema()
	if description != "" {
		s["description"] = description
	}
	return s
}

// What several tools take and give.

func workspaceID() property {
	return must("workspace_id", text("Registered workspace. workspace_info without arguments lists those you may use."))
}

func workID() property {
	return may("work_id", text("Open work whose coordination hint to return. Never needed."))
}

// coordination is the hint of spec/02 §5: counts, never what users wrote.
func coordination() property {
	return may("coordination", object{
		must("work_id", text("")),
		must("pending_user_items", count(0, 0, "")),
		must("queue_revision", count(0, 0, "")),
	}.within("Instructions of the user that wait, as counts."))
}

func operationOutcome() []property {
	return []property{
		must("status", oneOf("unknown means that it may have been applied: look at the files.",
			"applied", "checked", "rejected", "failed_rolled_back", "failed_partial", "unknown")),
		must("operation_id", text("In the ledger; operation_status takes it.")),
		must("replayed", flag("True when the operation_key named an earlier operation, which this is.")),
		must("files", listOf(text(""), "Paths that change.")),
		must("changes", listOf(object{
			must("path", text("")),
			may("before_version", text("Hash of the file before.")),
			may("after_version", text("Hash of the file after.")),
			must("kind", oneOf("A move is a delete of the source and a move of the destination.", "add", "update", "delete", "move")),
		}.schema(), "What happened, or with check_only would happen, at each path.")),
		may("truncated", flag("True when files and changes were cut to fit; the ledger has all.")),
	}
}
