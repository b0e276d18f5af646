package otelredlock_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/quorumlock/redlock"
	otelredlock "github.com/quorumlock/redlock/adapters/otel"
	"github.com/quorumlock/redlock/internal/testbed/memredis"
	exporter "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
)

// What Prometheus would see of one lock.
func Example() {
	cluster, err := memredis.Start(5) // your Redis servers
	if err != nil {
		log.Fatal(err)
	}
	defer cluster.Close()

	registry := prometheus.NewRegistry()
	reader, err := exporter.New(exporter.WithRegisterer(registry), exporter.WithoutScopeInfo())
	if err != nil {
		log.Fatal(err)
	}
	hooks, err := otelredlock.Hooks(otelredlock.WithMeterProvider(metric.NewMeterProvider(metric.WithReader(reader))))
	if err != nil {
		log.Fatal(err)
	}
	lk, err := redlock.Connect(cluster.URLs(), &redlock.Options{Hooks: hooks})
	if err != nil {
		log.Fatal(err)
	}
	err = lk.Do(context.Background(), "nightly-report", func(context.Context, *redlock.Lock) error { return nil })
	if err != nil {
		log.Fatal(err)
	}

	if err := lk.Close(); err != nil { // hooks are called a moment after the event: Close waits for them
		log.Fatal(err)
	}

	scrape := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).ServeHTTP(scrape, httptest.NewRequest("GET", "/metrics", nil))
	for lines := bufio.NewScanner(scrape.Body); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "redlock_operation_duration_seconds_count") {
			fmt.Println(lines.Text())
		}
	}
	// Output:
	// redlock_operation_duration_seconds_count{redlock_operation="acquire"} 1
	// redlock_operation_duration_seconds_count{redlock_operation="release"} 1
}
