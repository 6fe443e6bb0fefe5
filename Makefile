# make run starts a broker, make test installs what it needs and checks
# everything. Settings of the broker are LEVERET_... variables or ARGS.

ARGS      ?=
TESTFLAGS ?=
FUZZTIME  ?= 10s
BENCHTIME ?= 1s
ROUNDS    ?= 100
SOAK      ?= 10m

.DEFAULT_GOAL := build
.PHONY: run build man test deps check unit interop interop-readme interop-node interop-python interop-c interop-go interop-amqplib interop-perl interop-celery interop-tools interop-image interop-tls crash soak bench bench-peers fuzz cover clean

build: ## build bin/leveret
	@mkdir -p bin
	CGO_ENABLED=0 go build -o bin/leveret ./cmd/leveret

man: build ## write a manual page for each command to build/man
	bin/leveret man build/man

run: build ## start a broker on 127.0.0.1:5672
	@exec bin/leveret serve $(ARGS)

test: deps check cross unit interop ## check everything
	@echo '== all passed'
check cross unit: | $(if $(filter test,$(MAKECMDGOALS)),deps) # with -j, too

deps: ## install what the tests need, or say what is missing
	@scripts/test-deps

check:
	@echo '== gofmt, go vet'
	@files=$$(git ls-files '*.go') || exit 1; \
		unformatted=$$(gofmt -l $$(printf '%s\n' $$files | grep -v /testdata/)); \
		[ -z "$$unformatted" ] || { echo "gofmt -w these: $$unformatted"; exit 1; }
	@go vet ./...
	@go vet -tags foreign ./interop_test/...
	@go vet -tags tools ./interop_test/tools
	@go vet -tags soak ./interop_test
	@if command -v staticcheck >/dev/null; then echo '== staticcheck'; staticcheck ./...; fi

unit:
	@echo '== go test'
	@go test -race -shuffle=on -timeout 30m $(TESTFLAGS) ./...
	@echo '== allocation budgets, which the race detector upsets'
	@go test -run 'Alloc|Stock' ./amqp ./message ./queue/classic

# The clients of other languages, and what clients test themselves with, each
# with a broker of its own; most of their time they wait.
interop: deps build
	@$(MAKE) --no-print-directory -j 5 --output-sync=target interop-readme interop-node interop-python interop-c interop-go \
		interop-amqplib interop-perl interop-celery interop-tools interop-image interop-tls interop-migrate

interop-readme:
	@echo '== examples of the README'
	@scripts/with-broker scripts/readme-examples
interop-node:
	@echo '== Node: amqplib'
	@scripts/with-broker node --test --test-reporter=spec interop_test/node
interop-python:
	@echo '== Python: pika'
	@scripts/with-broker scripts/python -m unittest discover interop_test/python
interop-c:
	@echo '== C: rabbitmq-c'
	@scripts/with-broker interop_test/ctools/test.sh
interop-go: # it tests less with a product of another name
	@echo '== Go: the tests of amqp091-go itself'
	@LEVERET_PRODUCT_NAME=RabbitMQ scripts/own-network scripts/with-broker scripts/amqp091-go
# These two know but one port.
interop-amqplib:
	@echo '== Node: the tests of amqplib itself'
	@LEVERET_LISTEN=127.0.0.1:5672 LEVERET_PRODUCT_NAME=RabbitMQ scripts/own-network scripts/with-broker scripts/amqplib
interop-perl:
	@echo '== Perl: the tests of AnyEvent::RabbitMQ itself'
	@LEVERET_LISTEN=127.0.0.1:5672 LEVERET_PRODUCT_NAME=RabbitMQ scripts/own-network scripts/with-broker scripts/anyevent-rabbitmq
interop-celery: # a running worker cannot take more with a product of another name
	@echo '== Python: a Celery application'
	@LEVERET_PRODUCT_NAME=RabbitMQ scripts/with-broker scripts/celery

interop-tools:
	@echo '== tools: definitions of a real RabbitMQ, rabbitmqadmin, Prometheus'
	@LEVERET_MANAGEMENT_LISTEN=127.0.0.1:0 LEVERET_PROMETHEUS_LISTEN=127.0.0.1:0 \
		scripts/with-broker scripts/with-rabbitmq go test -count=1 -tags tools ./interop_test/tools
interop-image: # it needs the usual ports
	@echo '== as the image of RabbitMQ is used'
	@scripts/own-network interop_test/image/test.sh
interop-tls:
	@echo '== TLS: openssl, amqplib, pika'
	@interop_test/tls/test.sh

.PHONY: interop-migrate stop-check package package-check dist cross image-check
interop-migrate: deps build ## move a RabbitMQ of Debian's to a broker, interrupted and killed
	@LEVERET_MANAGEMENT_LISTEN=127.0.0.1:0 \
		scripts/with-rabbitmq scripts/with-broker interop_test/migrate/test.sh

stop-check: build ## stop a broker with 10,000 connections and a million messages
	@scripts/stop-check

package: ## build Debian packages into build/packages
	@scripts/package
package-check: package ## run what is in the packages
	@scripts/package-check
dist: ## build archives for all systems into build/dist
	@scripts/dist
cross: ## compile for other systems
	@for target in darwin/arm64 windows/amd64 linux/arm64; do \
		echo "== go build for $$target"; \
		CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/} go build ./... || exit 1; \
	done
image-check: ## run the image's files as the image's user, without docker
	@mkdir -p build/image
	CGO_ENABLED=0 go build -o build/image/leveret ./cmd/leveret
	@LEVERET=build/image/leveret scripts/own-network scripts/image-check

crash: ## kill brokers and stores ROUNDS times under load and look for what was confirmed
	LEVERET_CRASH_ROUNDS=$(ROUNDS) go test -timeout 0 -count=1 -v -run 'TestCrash$$' ./persistence
	LEVERET_CRASH_ROUNDS=$(ROUNDS) go test -timeout 0 -count=1 -v -run TestCrash ./interop_test

soak: ## keep brokers busy for SOAK, kill them now and then, lose nothing, keep disk and memory small
	go test -tags soak -timeout 0 -v -run TestSoak ./interop_test -soak $(SOAK)

bench: ## run all benchmarks
	go test -run '^$$' -bench . -benchtime $(BENCHTIME) ./...

bench-peers: build ## run the standard scenarios on Leveret and on the peers that are installed, ROUNDS times SECONDS each
	@scripts/bench-peers

fuzz: ## run each fuzz test for FUZZTIME
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz' || true); do \
			echo "== $$package $$target"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $$package; \
		done; \
	done

cover: ## how much of the code the tests reach
	@mkdir -p build
	@go test -coverpkg=./... -coverprofile=build/cover.out ./... >/dev/null
	@go tool cover -func=build/cover.out | tail -n 1
	@echo 'go tool cover -html=build/cover.out shows the lines'

clean:
	rm -rf bin build interop_test/node/node_modules interop_test/suites/amqplib/node_modules
