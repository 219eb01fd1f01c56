package librechat

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"writ/internal/testkit"
)

// keyID, issuer and audience are what LibreChat signs its tokens with.
const (
	keyID    = "lc-codeapi-2026-05"
	issuer   = "librechat"
	audience = "codeapi"
)

// synthetic is the token of a monitor, as the probes send it.
const synthetic = "synthetic-token-0123456789-0123456789"

// uidsEach is how many user ids the boxes of one server have, at most.
const uidsEach = 1000

// program is what is tested.
var program = testkit.Program{Root: filepath.Join("..", "..")}

func TestMain(m *testing.M) { os.Exit(program.Main(m)) }

// mode is how a server knows whom it serves.
type mode string

const (
	signed mode = "jwt"   // by tokens
	local  mode = "local" // it does not ask
)

// setup is how a server is configured.
type setup struct {
	mode   mode
	env    []string // variables of the contract
	config string   // lines of the configuration
}

// server is one data folder and the processes that serve it, one after the other.
type server struct {
	t    testing.TB
	exe  string
	dir  string
	env  []string
	uids int                // first of the user ids of its boxes, on the host
	key  ed25519.PrivateKey // of the tokens that it takes
	cmd  *exec.Cmd
	done <-chan struct{} // closed when the process is gone
	url  string          // of the API, with its version
	http *http.Client
}

// next numbers servers, so that each has user ids of its own.
var next struct {
	sync.Mutex
	n int
}

// newServer makes a data folder. The program is configured with the variables of the
// contract, as whoever moves over has them. What is started on it is killed when t ends, and its
// log is shown when t has failed.
func newServer(t testing.TB, s setup) *server {
	t.Helper()
	exe := program.Path(t)
	dir, err := os.MkdirTemp("", "writ-lc-") // short, for the sockets' sake
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	next.Lock()
	next.n++
	number := os.Getpid()%10_000*16 + next.n%16
	next.Unlock()
	uids := 300_000_000 + number*uidsEach // other packages' tests, which may run now, have those below
	srv := &server{t: t, exe: exe, dir: dir, uids: uids, key: private, http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(srv.http.CloseIdleConnections)
	for _, d := range []string{srv.data(), srv.tmp(), filepath.Join(dir, "keys")} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	putKey(t, filepath.Join(dir, "keys", keyID+".pem"), "PUBLIC KEY", public)
	putKey(t, srv.keyFile(), "PRIVATE KEY", private)
	config := fmt.Sprintf("listen: 127.0.0.1:0\nrunner: {warm: 0, uid_base: %d}\nlog: {level: warn}\n%s", uids, s.config)
	if err := os.WriteFile(filepath.Join(srv.data(), "config.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	srv.env = append([]string{
		"TMPDIR=" + srv.tmp(),
		"SERVICE_PORT=" + freePort(t, number),
		"CODEAPI_JWT_PUBLIC_KEYS_DIR=" + filepath.Join(dir, "keys"),
		"CODEAPI_SYNTHETIC_ACCESS_TOKEN=" + synthetic,
		`CODEAPI_PLAN_LIMITS={"tiny":{"max_file_size":1024}}`,
		"MAX_REQUESTS=100000", "UPLOAD_MAX_REQUESTS=100000", "DOWNLOAD_MAX_REQUESTS=100000", "FETCH_MAX_REQUESTS=100000",
	}, s.env...)
	if s.mode == local {
		srv.env = append(srv.env, "LOCAL_MODE=true")
	}
	t.Cleanup(func() {
		srv.kill()
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", srv.logged(6<<10))
		}
	})
	return srv
}

// freePort is one that nobody listens on, and that the kernel gives to nobody who did not
// name it, neither to a server's own API nor to a client's end of a connection: a server that
// was killed comes back where it was. number is the server's, so that no two look at one.
func freePort(t testing.TB, number int) string {
	t.Helper()
	given := 32_768 // the first of those that the kernel gives
	if b, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		_, _ = fmt.Sscan(string(b), &given) // else it is what most hosts have
	}
	const first, step = 10_000, 16
	for i := range 500 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+(number+i*step)%max(given-first, step)))
		if err != nil {
			continue
		}
		defer l.Close()
		return fmt.Sprint(l.Addr().(*net.TCPAddr).Port)
	}
	t.Fatal("of 500 ports none is free")
	return ""
}

func (s *server) data() string    { return filepath.Join(s.dir, "data") }
func (s *server) tmp() string     { return filepath.Join(s.dir, "tmp") }
func (s *server) log() string     { return filepath.Join(s.dir, "log") }
func (s *server) keyFile() string { return filepath.Join(s.dir, "key.pem") }

// putKey writes a key as OpenSSL does.
func putKey(t testing.TB, file, name string, key any) {
	t.Helper()
	var der []byte
	var err error
	if private, ok := key.(ed25519.PrivateKey); ok {
		der, err = x509.MarshalPKCS8PrivateKey(private)
	} else {
		der, err = x509.MarshalPKIXPublicKey(key)
	}
	if err == nil {
		err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: name, Bytes: der}), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

var endpoint = regexp.MustCompile(`(?mi)^interpreter: +(http://\S+)`)

// serve starts the program and waits until it says where it serves. A host that cannot
// sandbox skips the test.
func serve(t testing.TB, s setup) *server {
	t.Helper()
	srv := newServer(t, s)
	srv.start()
	srv.needSandbox()
	return srv
}

// needSandbox ends the test where nothing can be run.
func (s *server) needSandbox() {
	s.t.Helper()
	const said = "sandbox:"
	testkit.Eventually(s.t, "the server says what holds a run", func() bool { return strings.Contains(s.logged(1<<20), said) })
	_, line, _ := strings.Cut(s.logged(1<<20), said)
	line, _, _ = strings.Cut(line, "\n")
	if strings.Contains(line, "UNAVAILABLE") {
		if _, err := exec.LookPath("bwrap"); err != nil {
			testkit.Missing(s.t, "bwrap", line)
		}
		testkit.Missing(s.t, "userns", line)
	}
	s.needs("py", "bash", "node", "js")
}

// tools are what WRIT_REQUIRE calls the languages.
var tools = map[string]string{
	"py": "python", "bash": "bash", "node": "node", "js": "bun",
	"c": "c", "cpp": "cpp", "java": "java", "php": "php", "rs": "rust", "go": "go", "d": "d", "f90": "fortran", "r": "r",
}

// needs ends the test where a language has no tools.
func (s *server) needs(languages ...string) {
	s.t.Helper()
	for _, l := range languages {
		if why := s.lacks(l); why != "" {
			testkit.Missing(s.t, tools[l], why)
		}
	}
}

// lacks is why a language cannot be run on this host, empty when it can.
func (s *server) lacks(language string) string {
	s.t.Helper()
	// What is wrong with files is found after what is wrong with the language.
	a, err := s.user("nobody").sendJSON(s.t.Context(), "/exec", map[string]any{"lang": language, "code": "", "files": 0})
	if err != nil || a.status != http.StatusBadRequest {
		s.t.Fatalf("files that are none: %v %s", err, a)
	}
	if strings.Contains(string(a.body), "not installed") {
		return string(a.body)
	}
	return ""
}

// start starts the program on the folder, and waits until it says where it serves.
func (s *server) start() {
	s.t.Helper()
	log, err := os.Create(s.log())
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(s.exe, "--data", s.data(), "serve")
	cmd.Env = append(os.Environ(), s.env...)
	cmd.Stderr, cmd.Stdout = log, log
	s.cmd, s.done = cmd, testkit.Spawn(s.t, cmd)
	var url []string
	testkit.Eventually(s.t, "the server says where it serves", func() bool {
		select {
		case <-s.done:
			s.t.Fatalf("the server ended: %v\n%s", cmd.ProcessState, s.logged(4<<10))
		default:
		}
		url = endpoint.FindStringSubmatch(s.logged(1 << 20))
		return url != nil
	}, func() string { return s.logged(4 << 10) })
	if u := strings.TrimSuffix(url[1], "/"); s.url == "" { // clients of the process before may be reading it
		s.url = u
	} else if s.url != u {
		s.t.Fatalf("the server is at %s now, and was at %s", u, s.url)
	}
}

// kill ends the process at once, and waits until it is gone.
func (s *server) kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	s.http.CloseIdleConnections() // which are to nobody; a request that found one would fail
	s.cmd = nil
}

// stop has the server end in order, and fails the test when it does not.
func (s *server) stop() {
	s.t.Helper()
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	testkit.Eventually(s.t, "the server ends", func() bool {
		select {
		case <-s.done:
			return true
		default:
			return false
		}
	}, func() string { return s.logged(4 << 10) })
	if st := s.cmd.ProcessState; !st.Success() {
		s.t.Errorf("a server that is told to stop ends with %v", st)
	}
	s.cmd = nil
}

// logged is the end of the log, at most n bytes.
func (s *server) logged(n int) string {
	b, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-n):])
}
