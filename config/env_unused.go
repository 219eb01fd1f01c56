package config

import "strings"

// meaningless is why a variable of the contract means nothing here; empty for one that
// does, and for one that is not the contract's.
func meaningless(name string) string {
	for _, v := range variables() {
		if v.name == name {
			return ""
		}
	}
	for _, row := range unused() {
		for known := range strings.FieldsSeq(row.names) {
			prefix, family := strings.CutSuffix(known, "*")
			if name == known || family && strings.HasPrefix(name, prefix) {
				return row.why
			}
		}
	}
	return ""
}

// unused are the variables of spec/03 §16 and spec/05 §4.1 that mean nothing here. A name that ends in *
// is that of all that begin so.
func unused() []struct{ names, why string } {
	return []struct{ names, why string }{
		{"SANDBOX_ENDPOINT FILE_SERVER_URL TOOL_CALL_SERVER_URL EGRESS_GATEWAY_URL PORT", "one program is API, file store and runner: there are no addresses between them (a runner apart is runner.socket)"},
		{"REDIS_*", "records are in SQLite or PostgreSQL: see database"},
		{"MINIO_* FILE_SERVER_PORT FILE_SERVER_HOST", "files are in the folder blobs of the data folder"},
		{"INSTANCE_ID", "a server's id is in its data folder"},
		{"WORKER_HEALTH_PORT", "there is no worker apart: GET /v1/health tells for all"},
		{"PYTHON_CONCURRENCY OTHER_CONCURRENCY JOB_WINDOW", "one queue is for all languages: see runner.slots and runner.queue"},
		{"MAX_UPLOAD_CHECKS MAX_UPLOAD_WAIT", "an upload that was answered is there: a download need not wait for it"},
		{"CODEAPI_FILE_RETENTION_WORK_PER_TICK", "a pass removes all that is due, in small steps that keep nobody waiting"},
		{"CODEAPI_FILE_RETENTION_EXCLUDED_PREFIXES", "files are those of sessions and nothing else is removed; none can be kept beyond the time of its session"},
		{"CODEAPI_INTERNAL_SERVICE_TOKEN", "there are no services inside that speak to each other over a network"},
		{"PTC_MODE PTC_DEBUG", "programmatic tool calling is not offered"},
		{"TOOL_CALL_SERVER_PORT TOOL_CALL_REQUEST_TIMEOUT TOOL_CALL_SESSION_EXPIRY TCS_*", "programmatic tool calling is not offered"},
		{"EXECUTION_MANIFEST_* CODEAPI_EXECUTION_MANIFEST_* SANDBOX_EXECUTION_MANIFEST_PUBLIC_KEY", "the runner runs what has the digest that was admitted, and needs no signed list of it"},
		{"CODEAPI_EGRESS_* EGRESS_* SANDBOX_REQUIRE_EGRESS_MANIFEST", "runs reach no network and no file store: there is no egress to grant"},
		{"SANDBOX_DISABLE_NETWORKING SANDBOX_ALLOWED_LOCAL_NETWORK_PORT SANDBOX_FORWARD_TARGET", "runs never reach a network"},
		{"CODEAPI_SANDBOX_BACKEND CODEAPI_HARDENED_SANDBOX_MODE LAMBDA_MICROVM_* LAUNCHER_* NSJAIL_*", "the sandbox is bubblewrap; runner.strict refuses to run when a layer of it is missing"},
		{"CODEAPI_SESSION_CHECKPOINTS CODEAPI_CHECKPOINT_* SANDBOX_CHECKPOINT_MAX_BYTES SANDBOX_SESSION_WORKSPACE_ENABLED", "what a runtime session keeps is kept as files are: see interpreter.runtime"},
		{"SANDBOX_PER_JOB_UIDS SANDBOX_JOB_GID_BASE SANDBOX_JOB_UID_COUNT", "as root each box always has a user and a group of its own: see runner.uid_base"},
		{"SANDBOX_RLIMIT_AS", "memory is bounded as a whole: see interpreter.limits.memory_bytes"},
		{"SANDBOX_USE_CGROUPV2", "control groups are used where the host lets them be"},
		{"SANDBOX_PRIME_CONCURRENCY SANDBOX_UPLOAD_CONCURRENCY SANDBOX_INPUT_CACHE_MAX_BYTES", "files go into a box and come out of it one after the other, without a cache"},
		{"SANDBOX_EXECUTE_BODY_LIMIT", "there is no API of the runner: see interpreter.json_bytes"},
		{"SANDBOX_WORKSPACE_REAPER_MAX_AGE_SECONDS", "a run's files are in memory and end with its box"},
		{"SANDBOX_PACKAGES_DIRECTORY", "languages are those of the host: see writ doctor"},
		{"SANDBOX_LIMIT_OVERRIDES", "limits are one for all languages: see interpreter.limits"},
		{"SANDBOX_WARMUP_COMMAND SANDBOX_WARMUP_TIMEOUT_MS", "boxes are kept ready without a command: see interpreter.warm"},
	}
}
