package monitoring

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"shaperd/internal/metrics"
)

// fromPrometheus are the labels that every series has of the scrape.
var fromPrometheus = []string{"job", "instance"}

// foreign are metrics that are not of shaperd's table: Prometheus's own, and those of the process.
var foreign = map[string]bool{"up": true, "process_start_time_seconds": true, "process_cpu_seconds_total": true}

// These take a query apart as far as names of metrics and labels are concerned.
var (
	quoted   = regexp.MustCompile(`"[^"]*"`)
	grouping = regexp.MustCompile(`\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
	selector = regexp.MustCompile(`\b([a-z][a-z0-9_]*_[a-z0-9_]+|up)\b(\{[^}]*\})?(\s*\()?`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)`)
)

// wrongIn returns what a query names that does not exist.
func wrongIn(query string) (wrong []string) {
	table := map[string]metrics.Definition{}
	for _, d := range metrics.Definitions() {
		table[d.Name] = d
		if d.Type == metrics.Histogram {
			d.Labels = append(d.Labels, "le")
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				table[d.Name+suffix] = d
			}
			delete(table, d.Name)
		}
	}
	query = quoted.ReplaceAllString(query, `""`)
	known := slices.Clone(fromPrometheus) // of any metric in the query
	named := 0
	plain := grouping.ReplaceAllString(query, " ")
	for _, m := range selector.FindAllStringSubmatch(plain, -1) {
		name, matchers, isCall := m[1], m[2], m[3] != ""
		if isCall {
			continue
		}
		named++
		d, ok := table[name]
		if !ok && !foreign[name] {
			wrong = append(wrong, fmt.Sprintf("no metric %s", name))
			continue
		}
		known = append(known, d.Labels...)
		for _, l := range matcher.FindAllStringSubmatch(matchers, -1) {
			if !slices.Contains(fromPrometheus, l[1]) && !slices.Contains(d.Labels, l[1]) {
				wrong = append(wrong, fmt.Sprintf("%s has no label %s", name, l[1]))
			}
		}
	}
	for _, m := range grouping.FindAllStringSubmatch(query, -1) {
		for _, l := range strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !slices.Contains(known, l) {
				wrong = append(wrong, fmt.Sprintf("no metric in it has the label %s", l))
			}
		}
	}
	if named == 0 {
		wrong = append(wrong, "it names no metric")
	}
	return wrong
}

func TestWrongNamesInQueriesAreFound(t *testing.T) {
	for query, want := range map[string]string{
		`up{job="shaperd"} unless on (job, instance) shaperd_build_info`:                           "[]",
		`sum by (class, le) (rate(shaperd_class_wait_seconds_bucket{class="no_such_metric"}[5m]))`: "[]",
		`shaperd_relay_session`:                                             "[no metric shaperd_relay_session]",
		`shaperd_class_wait_seconds`:                                        "[no metric shaperd_class_wait_seconds]",
		`rate(shaperd_relay_refused_total{class="x", relay="y"}[5m])`:       "[shaperd_relay_refused_total has no label class]",
		`sum by (reasons) (shaperd_relay_refused_total)`:                    "[no metric in it has the label reasons]",
		`shaperd_link_sent_bytes_total * on (links) shaperd_relay_sessions`: "[no metric in it has the label links]",
		`absent(vector(1))`:                                                 "[it names no metric]",
	} {
		if got := fmt.Sprint(wrongIn(query)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
}
