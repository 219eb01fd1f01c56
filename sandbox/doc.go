// Package sandbox runs one program in one box.
package sandbox
