package mcp

// methods are the calls that the SDK knows. Any other is answered before it sees it:
// over HTTP it would answer an older client with a status and no JSON-RPC error.
var methods = map[string]bool{
	"initialize": true, "ping": true, "server/discover": true,
	"tools/list": true, "tools/call": true,
	"prompts/list": true, "prompts/get": true, "completion/complete": true,
	"resources/list": true, "resources/read": true, "resources/templates/list": true,
	"resources/subscribe": true, "resources/unsubscribe": true, "subscriptions/listen": true,
	"logging/setLevel": true,
}

// notifications are those that mean something here. Any other is taken and dropped,
// as is a call without an id: nothing answers a notification.
var notifications = map[string]bool{
	"notifications/initialized": true, "notifications/cancelled": true,
	"notifications/progress": true, "notifications/roots/list_changed": true,
}
