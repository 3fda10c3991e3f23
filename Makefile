# shaperd needs Go (see go.mod for the version) and make, nothing else.
# "make test" also installs what the tests run, as root on Debian.

export PATH := $(PATH):/usr/local/go/bin
GO_FOUND := $(shell PATH="$(PATH)" command -v go)
GO = $(or $(GO_FOUND),$(error Go is needed, on PATH or in /usr/local/go: see https://go.dev/dl))

# One way to build for all of it, so that the compiler's cache serves all: static, without paths of this machine.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath $(GOFLAGS)

PREFIX ?= /usr/local
SHARE = $(PREFIX)/share
FUZZTIME ?= 10s
VM_PACKAGES ?= ./internal/vm ./internal/daemon $(addsuffix /...,$(wildcard ./netlink))

SYSTEMD_SUITES ?= bookworm trixie

LINTER := bin/golangci-lint
NFPM := bin/nfpm

.DEFAULT_GOAL := help
.PHONY: help run demo demo-kernel demo-shared test test-valkey test-vm test-systemd build lint fix fuzz bench bench-relay bench-admission bench-kernel bpf man install deb rpm clean

help: ## show these targets
	@echo "shaperd: traffic classes, guaranteed rates and fair shares for a Linux host"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

run: build ## build and start the daemon with its built-in policy; needs no root
	bin/shaperd run

demo: build ## four classes on loopback: live bars, then a table of what was measured
	bin/shaperd demo

demo-kernel: build ## as root: a router in a network namespace shapes with the kernel, both ways
	sh tools/deps.sh demo-kernel
	bin/shaperd demo --kernel

demo-shared: build ## three daemons share one rate by a Redis, which dies and comes back empty
	sh tools/deps.sh demo-shared
	bin/shaperd demo --shared

test: ## install what the tests need, then run all of them with the race detector
	sh tools/deps.sh test
	@$(GO) -C tools build -o ../bin/gotest ./gotest
	CGO_ENABLED=1 bin/gotest -race $(TESTFLAGS) ./...
	@$(GO) -C tools test ./...

test-valkey: ## run the tests of what shares on a Redis, on a Valkey
	sh tools/deps.sh test-valkey
	sh tools/valkey.sh bin/valkey
	@$(GO) -C tools build -o ../bin/gotest ./gotest
	PATH="$(CURDIR)/bin/valkey:$$PATH" bin/gotest -count=1 $(TESTFLAGS) ./internal/store ./internal/lease ./internal/admission/...

test-vm: ## run the tests of VM_PACKAGES on a fuller kernel, in an emulated machine
	sh tools/deps.sh test-vm
	sh tools/vmtest/kernel.sh bin/vm/kernel
	@$(GO) -C tools build -o ../bin/vmtest ./vmtest
	bin/vmtest $(TESTFLAGS) $(VM_PACKAGES)

test-systemd: man $(NFPM) ## as root: install the package in machines with the systemd of SYSTEMD_SUITES, and run it there
	sh tools/deps.sh test-systemd
	@for suite in $(SYSTEMD_SUITES); do sh tools/systemdtest/tree.sh $$suite bin/systemd/$$suite & all="$$all $$!"; done; for one in $$all; do wait $$one || exit 1; done
	@$(GO) -C tools build -o ../bin/gotest ./gotest
	SYSTEMD_SUITES="$(SYSTEMD_SUITES)" bin/gotest -count=1 -parallel=5 -tags=systemd $(TESTFLAGS) ./internal/systemdtest

build: ## build bin/shaperd
	$(GO) build -o bin/shaperd ./cmd/shaperd

lint: $(LINTER) ## check style, names, imports and common faults
	$(LINTER) run ./...
	$(GO) vet -tags=vm,systemd ./...

fix: $(LINTER) ## format, and mend what the linter can mend by itself
	$(LINTER) run --fix ./...

$(LINTER): tools/go.mod
	$(GO) -C tools build -ldflags='-s -w' -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

fuzz: ## run every fuzz test for FUZZTIME (10s)
	@set -e; grep -rl --include='*_test.go' '^func Fuzz' . | sort | while read -r file; do \
		for name in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
			echo "$$(dirname "$$file") $$name"; \
			$(GO) test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) "$$(dirname "$$file")"; \
		done; \
	done

bench: ## run the Go benchmarks
	$(GO) test -run='^$$' -bench=. -benchmem ./...

bench-relay: ## measure the relay beside HAProxy, nginx and io.Copy: minutes, as root
	sh tools/deps.sh bench-relay
	$(GO) run ./internal/bench/relay

bench-admission: ## measure admission beside the Redis library and throttled: a minute
	sh tools/deps.sh bench-admission
	$(GO) run ./internal/bench/admission

bench-kernel: ## measure the kernel datapath beside tc: minutes, as root
	sh tools/deps.sh bench-kernel
	$(GO) run ./internal/bench/kernel

bpf: ## compile the eBPF classifier anew, after a change of netlink/bpf/classifier.c
	sh tools/deps.sh bpf
	cd netlink/bpf && clang-14 -O2 -g -Wall -Werror -target bpf -mcpu=v3 -I/usr/include/$(shell uname -m)-linux-gnu -c classifier.c -o classifier.o
	cd netlink/bpf && llvm-strip-14 -g classifier.o && sha256sum classifier.c classifier.o >classifier.sum

# A program for another machine cannot be run here.
RUN = $(if $(GOARCH),GOARCH= $(GO) run ./cmd/shaperd,bin/shaperd)

man: build ## write the man pages to bin/man, completions to bin/completions
	@rm -rf bin/man bin/completions && mkdir -p bin/man bin/completions
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct 2>/dev/null || date +%s) $(RUN) man bin/man
	@for shell in bash zsh fish; do $(RUN) completion $$shell >bin/completions/$$shell || exit 1; done

# Builds only what is missing, so that root need not: make build man && sudo make install
install: $(if $(wildcard bin/shaperd),,build) $(if $(wildcard bin/completions),,man) ## install program, units, man pages, completions, docs, examples; DESTDIR, PREFIX
	install -Dm755 bin/shaperd $(DESTDIR)$(PREFIX)/bin/shaperd
	install -d $(DESTDIR)$(SHARE)/man/man1 && install -m644 bin/man/*.1 $(DESTDIR)$(SHARE)/man/man1
	install -d $(addprefix $(DESTDIR)$(SHARE)/,bash-completion/completions zsh/site-functions fish/vendor_completions.d)
	install -m644 bin/completions/bash $(DESTDIR)$(SHARE)/bash-completion/completions/shaperd
	install -m644 bin/completions/zsh $(DESTDIR)$(SHARE)/zsh/site-functions/_shaperd
	install -m644 bin/completions/fish $(DESTDIR)$(SHARE)/fish/vendor_completions.d/shaperd.fish
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	install -m644 systemd/shaperd.service systemd/shaperd.socket $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed -i 's|/usr/local/bin|$(PREFIX)/bin|' $(DESTDIR)$(PREFIX)/lib/systemd/system/shaperd.service
	install -d $(DESTDIR)$(SHARE)/doc/shaperd/examples
	install -m644 configs/reference.yaml configs/shaperd.schema.json configs/examples/*.yaml $(DESTDIR)$(SHARE)/doc/shaperd/examples
	install -d $(addprefix $(DESTDIR)$(SHARE)/doc/shaperd/,docs/admission monitoring/prometheus monitoring/grafana)
	install -m644 docs/*.md docs/*.svg $(DESTDIR)$(SHARE)/doc/shaperd/docs
	install -m644 docs/admission/* $(DESTDIR)$(SHARE)/doc/shaperd/docs/admission
	install -m644 monitoring/prometheus/*.yml $(DESTDIR)$(SHARE)/doc/shaperd/monitoring/prometheus
	install -m644 monitoring/grafana/*.json $(DESTDIR)$(SHARE)/doc/shaperd/monitoring/grafana
	test -e $(DESTDIR)/etc/shaperd/shaperd.yaml || install -Dm644 configs/default.yaml $(DESTDIR)/etc/shaperd/shaperd.yaml

deb: man $(NFPM) ## build a Debian package in bin; GOARCH, VERSION
	@sh packaging/build.sh deb bin

rpm: man $(NFPM) ## build an RPM package in bin; GOARCH, VERSION
	@sh packaging/build.sh rpm bin

# GOARCH is the package's, not this program's.
$(NFPM): tools/nfpm/go.mod
	GOARCH= $(GO) -C tools/nfpm build -ldflags='-s -w' -o ../../$@ github.com/goreleaser/nfpm/v2/cmd/nfpm

clean: ## remove what was built
	rm -rf bin
