package session

import (
	"path"
	"strings"
)

// TypeOf is the content type of a file that a run made, by the extension of its name
// (spec/03 §8). A name without one, ".env" too, and an extension that is not known have
// application/octet-stream.
func TypeOf(name string) string {
	base := path.Base(name)
	i := strings.LastIndexByte(base, '.')
	if i <= 0 {
		return anyType
	}
	if t, ok := typeOfExtension[strings.ToLower(base[i+1:])]; ok {
		return t
	}
	return anyType
}

const office = "application/vnd.openxmlformats-officedocument."

// typeOfExtension has the extensions that the contract lets out, in its order, and more that
// operators add. Of those that the contract's table has, each has the type that it says. It
// is never written to.
var typeOfExtension = map[string]string{
	"c": "text/x-c", "cs": "text/x-csharp", "cpp": "text/x-c++", "go": "text/x-go", "java": "text/x-java", "js": "text/javascript",
	"kt": "text/x-kotlin", "kts": "text/x-kotlin", "lua": "text/x-lua", "php": "application/x-php", "pl": "text/x-perl", "ps1": "application/x-powershell",
	"py": "text/x-python", "r": "text/x-r", "rb": "text/x-ruby", "rs": "text/x-rust", "scala": "text/x-scala", "sh": "application/x-sh",
	"sql": "application/sql", "swift": "text/x-swift", "ts": "text/x-typescript", "jsx": "text/javascript", "tsx": "text/x-typescript", "groovy": "text/x-groovy",

	"css": "text/css", "htm": "text/html", "html": "text/html", "less": "text/x-less", "sass": "text/x-sass", "scss": "text/x-scss",
	"svg": "image/svg+xml", "svelte": "text/plain", "vue": "text/plain",

	"adoc": "text/asciidoc", "asciidoc": "text/asciidoc", "md": "text/markdown", "rst": "text/x-rst", "tex": "text/x-tex", "txt": "text/plain", "wiki": "text/plain",

	"csv": "text/csv", "json": "application/json", "bson": "application/bson", "json5": "application/json5", "jsonl": "application/x-ndjson",
	"parquet": "application/vnd.apache.parquet", "tsv": "text/tab-separated-values", "xml": "application/xml", "yaml": "application/yaml", "yml": "application/yaml",

	"ics": "text/calendar", "ical": "text/calendar", "ifb": "text/calendar", "icalendar": "text/calendar",

	"conf": "text/plain", "env": "text/plain", "ini": "text/plain", "properties": "text/plain", "toml": "application/toml",

	"doc": "application/msword", "docx": office + "wordprocessingml.document", "pdf": "application/pdf",
	"ppt": "application/vnd.ms-powerpoint", "pptx": office + "presentationml.presentation",
	"xls": "application/vnd.ms-excel", "xlsx": office + "spreadsheetml.sheet",
	"odt": "application/vnd.oasis.opendocument.text", "ods": "application/vnd.oasis.opendocument.spreadsheet", "odp": "application/vnd.oasis.opendocument.presentation",
	"rtf": "application/rtf",

	"avif": "image/avif", "bmp": "image/bmp", "gif": "image/gif", "ico": "image/x-icon", "jpeg": "image/jpeg", "jpg": "image/jpeg",
	"png": "image/png", "tif": "image/tiff", "tiff": "image/tiff", "webp": "image/webp",

	"eot": "application/vnd.ms-fontobject", "ttf": "font/ttf", "woff": "font/woff", "woff2": "font/woff2",

	"7z": "application/x-7z-compressed", "bz2": "application/x-bzip2", "gz": "application/gzip", "gzip": "application/gzip",
	"rar": "application/vnd.rar", "tar": "application/x-tar", "zip": "application/zip",

	"tf": "text/plain", "tfvars": "text/plain", "tfstate": "application/json", "hcl": "text/plain", "nomad": "text/plain",

	"bat": "text/plain", "cmd": "text/plain", "deb": "application/vnd.debian.binary-package", "log": "text/plain", "rpm": "application/x-rpm", "vbs": "text/vbscript",

	"h": "text/x-c", "hpp": "text/x-c++", "mjs": "text/javascript", "ipynb": "application/x-ipynb+json", "wasm": "application/wasm",
	"heic": "image/heic", "heif": "image/heif", "otf": "font/otf", "tgz": "application/gzip", "xz": "application/x-xz",
	"aac": "audio/aac", "flac": "audio/flac", "m4a": "audio/mp4", "mp3": "audio/mpeg", "ogg": "audio/ogg", "wav": "audio/wav",
	"avi": "video/x-msvideo", "mkv": "video/x-matroska", "mov": "video/quicktime", "mp4": "video/mp4", "webm": "video/webm",
}
