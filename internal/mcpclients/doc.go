// Package mcpclients runs the real program against the clients that people have. It
// has tests only.
//
// The clients, a server to compare with, and the suite that the makers of the protocol
// check servers with are programs of npm, pinned by package-lock.json, with the Node.js
// that they need. scripts/mcpclients.sh installs them into node_modules;
// testkit.MCPClient finds them there. The suite itself runs in package mcp, whose
// internals it needs.
//
// It promises that a client which somebody else wrote can list the tools of `writ mcp`
// and `writ serve`, read, find, patch, and bring a patch that is held to its end. It
// refuses to know how the program does it. None of its inputs are hostile.
package mcpclients
