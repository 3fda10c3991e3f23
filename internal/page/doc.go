// Package page serves a web page that shows each link and class, live:
//
//	h := page.Handler(status) // at /, /page/ and /api/status
//
// It only reads. What it sends of a status is chosen field by field (public.go),
// since whoever reaches the metrics reaches the page: a field that is added to
// the control socket's answers is not on the page until somebody says so.
// Passages of the policy file, addresses and the process's id are not.
//
// A browser is told to run nothing but the files in assets, to send nothing
// elsewhere and to show the page in no other site's frame. Names come from a
// file and reach the page as text only; Trusted Types make sure of that.
//
// The assets are what the browser gets, with nothing built or fetched:
// page.js asks each second and lays out the whole, panel.js is one link,
// chart.js its chart, history.js what was measured lately, format.js how
// amounts are written. uplot.min.js and uplot.min.css are dist/uPlot.iife.min.js
// and dist/uPlot.min.css of the npm package uplot 1.6.32, unchanged, under the
// licence in uplot.LICENSE.
//
// The package starts no goroutine and owns nothing that must be closed.
package page
