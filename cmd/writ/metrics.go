package main

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"writ"
	"writ/codeapi"
	"writ/session"
	"writ/task"
)

// metrics are the numbers of this server that an operator watches. No label has a tenant,
// a user or an id: they would be without number, and are nobody's business who may only
// watch.
type metrics struct {
	registry *prometheus.Registry
	runs     *prometheus.CounterVec
	wall     *prometheus.HistogramVec
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	failed   prometheus.Counter // passes of retention
}

// seconds are the bounds of the histograms: from a warm box to the deadline of a job.
var seconds = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		runs: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_runs_total", Help: "Runs that ended here, by language and by how."}, []string{"language", "outcome"}),
		wall: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "writ_run_seconds", Help: "How long runs took that were started.", Buckets: seconds}, []string{"language"}),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "writ_interpreter_requests_total", Help: "Requests of the code interpreter's API, by route and status."}, []string{"route", "status"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "writ_interpreter_request_seconds", Help: "How long those requests took.", Buckets: seconds}, []string{"route"}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "writ_retention_failed_passes_total", Help: "Passes that were to remove files whose time is over, and failed."}),
	}
	m.registry.MustRegister(m.runs, m.wall, m.requests, m.took, m.failed,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// handler answers what GET /metrics does.
func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError})
}

// carrying has the gauge of runs under way ask carried.
func (m *metrics) carrying(carried func() int) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "writ_runs_carried", Help: "Tasks that run here or wait for a slot.",
	}, func() float64 { return float64(carried()) }))
}

// request counts one of the code interpreter's API.
func (m *metrics) request(o codeapi.Observation) {
	route := o.Route
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(o.Status)).Inc()
	m.took.WithLabelValues(route).Observe(o.Took.Seconds())
}

// observer is the hub with the numbers of runs beside it.
type observer struct {
	*task.Hub
	m *metrics
}

// Changed counts a run that is over, and tells the hub: whoever hears of the end from there
// finds it counted.
func (o observer) Changed(t writ.Task) {
	if t.Result != nil && t.State.Terminal() {
		o.m.runs.WithLabelValues(string(t.Language), string(t.Result.Outcome)).Inc()
		if t.Result.Started {
			o.m.wall.WithLabelValues(string(t.Language)).Observe(float64(t.Result.WallMS) / 1000)
		}
	}
	o.Hub.Changed(t)
}

// files has the numbers of what the code interpreter keeps asked for when they are read.
func (m *metrics) files(s *session.Service) {
	m.registry.MustRegister(keptCollector{s})
}

// keptCollector reads what is kept from the store.
type keptCollector struct{ files *session.Service }

func keptDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("writ_files_"+name, help, nil, nil)
}

var (
	descSessions = keptDesc("sessions", "Sessions of the code interpreter, of all tenants.")
	descObjects  = keptDesc("objects", "Files in them.")
	descBytes    = keptDesc("bytes", "Bytes of those files, each counted as if no other had the same ones.")
	descRuntimes = keptDesc("runtime_sessions", "Runtime sessions of the code interpreter.")
	descRemoved  = keptDesc("removed_sessions_total", "Sessions that this server removed since their time was over.")
	descFreed    = keptDesc("removed_bytes_total", "Bytes on the disk that this server removed since nobody named them.")
)

// Describe implements prometheus.Collector.
func (keptCollector) Describe(c chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSessions, descObjects, descBytes, descRuntimes, descRemoved, descFreed} {
		c <- d
	}
}

// usageTime bounds how long a reader of metrics waits for the store.
const usageTime = 5 * time.Second

// Collect implements prometheus.Collector.
func (k keptCollector) Collect(c chan<- prometheus.Metric) {
	ctx, stop := context.WithTimeout(context.Background(), usageTime)
	defer stop()
	u, err := k.files.Usage(ctx)
	if err != nil {
		c <- prometheus.NewInvalidMetric(descSessions, err)
		return
	}
	for _, v := range []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value int64
	}{
		{descSessions, prometheus.GaugeValue, u.Sessions}, {descObjects, prometheus.GaugeValue, u.Objects}, {descBytes, prometheus.GaugeValue, u.Bytes},
		{descRuntimes, prometheus.GaugeValue, u.Runtimes},
		{descRemoved, prometheus.CounterValue, int64(u.Removed.Sessions)}, {descFreed, prometheus.CounterValue, u.Removed.BlobBytes},
	} {
		c <- prometheus.MustNewConstMetric(v.desc, v.kind, float64(v.value))
	}
}
