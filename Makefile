# What CI runs are targets that people run, too.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK = golang.org/x/vuln/cmd/govulncheck@v1.6.0
ACTIONLINT  = github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

# How long each fuzz target runs, and what the comparison with others is told.
FUZZTIME   = 10s
BENCHFLAGS = -quick

# How many schedules make chaos runs in the model, on miniredis, and of each scenario on
# redis-servers; and how long make nightly does all it can, keeping the histories of what fails.
SCHEDULES = 30000
MINIREDIS = 300
REAL      = 1
NIGHT     = 8h
FAILURES  = failures

# Which mutants make mutants builds: all, or of those that one rule convicts in one arena the
# one that it convicts first.
MUTANTS = all

# Which of the servers of .ci/servers make servers takes: redis-8.6 valkey-9.1, for example.
SERVERS =

# Where make release-check packs: into a directory of its own if it is empty.
DIST =

# The tests have three sizes: quick, which is go test ./...; full, which make test and make race ask
# for, with servers; and long, which REDLOCK_LONG=1 asks for.
REDLOCK_SERVERS ?= 1
export REDLOCK_SERVERS
TIMEOUT = 30m

# What runs the tests of all modules.
TESTALL = go run ./internal/testall

# Under the race detector each package's tests have one processor. With
# two processors it crashes now and then, with
# "ThreadSanitizer: CHECK failed" or with a SIGSEGV inside of it: the timers of a bubble of
# testing/synctest have one race context, and two goroutines that look at timers that are due
# use it on two threads at once (golang/go#78156; maybeRunChan in runtime/time.go). Four
# goroutines of a bubble that wait for time.NewTimer(0) over and over show it in a second.
# It does not need two processors to find races.
#
# Without a C compiler, which it needs, RACE is empty. UNRACED continues a regular expression of packages that are left out.
UNRACED =
RACE := $(if $(filter 1,$(shell go env CGO_ENABLED)),-race -cpu 1)

.PHONY: help found test race mutants vet platforms oldest tidy api names first stranger fuzz bench demo cover ci chaos nightly servers tables picture recipes model quickmodel reproducible release-check

help: ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

test: ## run all tests of all modules, with servers if there is a redis-server, and say what is skipped
	@$(TESTALL) -timeout $(TIMEOUT)

# Servers answer in real time, and under the race detector a test takes ten times as long as its timeouts
# were made for. So it runs the tests in virtual time, and the night all (REDLOCK_LONG=1).
race: ## run the quick tests again under the race detector, without those of documents, databases and alerts, and of UNRACED
	@test -n "$(RACE)" || { echo "the race detector needs a C compiler, and CGO_ENABLED=1"; exit 1; }
	@REDLOCK_SERVERS=0 REDLOCK_REQUIRE_REDIS=0 $(TESTALL) -except '/internal/(found|repotest|testall)$$|/recipes(/asynq|/kubernetes|/systemd)?$$|/alerts$$$(UNRACED)' $(RACE) -timeout $(TIMEOUT)

mutants: ## break the library in each way that chaos/mutants_test.go knows, and have a scenario notice
	go test ./chaos -count=1 -timeout $(TIMEOUT) -run TestMutants -mutants $(MUTANTS)

vet: ## gofmt, go vet, staticcheck, govulncheck, and actionlint for the workflows
	@unformatted=$$(gofmt -l .) && test -z "$$unformatted" || { echo "gofmt -w is due for:" $$unformatted; exit 1; }
	.ci/each go vet ./...
	.ci/each go run $(STATICCHECK) ./...
	.ci/vulnerabilities $(GOVULNCHECK)
	go run $(ACTIONLINT)

# The go.mod of each published module has the oldest Go and the oldest dependencies that it allows: so the tests
# run with these, except that Go is the newest here. What needs a later Go or the history of the tree is left out.
OLDEST = go$$(awk '$$1 == "go" { print $$2 }' go.mod)

oldest: ## run the quick tests of the published modules with the oldest Go that they allow
	@.ci/modules | while read -r dir; do \
		(cd $$dir && export REDLOCK_SERVERS=0 GOTOOLCHAIN=$(OLDEST) && go version && echo "$$dir: $$(go list -m github.com/redis/go-redis/v9)" && \
		 go test $$(go list ./... | grep -Ev '/internal/(found|repotest|testall)$$')) || exit 1; \
	done

platforms: ## go vet, of tests too, for other systems and machines: takes minutes the first time
	@for on in windows/amd64 darwin/arm64 freebsd/amd64 linux/386; do \
		echo "go vet for $$on"; GOOS=$${on%/*} GOARCH=$${on#*/} CGO_ENABLED=0 go vet ./... || exit 1; \
	done

tidy: ## check that go.mod and go.sum have what is needed, and nothing else
	go mod tidy -diff
	cd chaos/linear && go mod tidy -diff
	cd recipes && go mod tidy -diff
	cd recipes/asynq && go mod tidy -diff
	cd recipes/kubernetes && go mod tidy -diff
	cd adapters/otel && go mod tidy -diff
	cd adapters/otel/alerts && go mod tidy -diff
	cd adapters/gocron && go mod tidy -diff
	cd adapters/certmagic && go mod tidy -diff
	cd adapters/grpc && go mod tidy -diff
	@echo "bench: left out of this check: the tests of a library that it measures need a module that cannot be downloaded"

api: ## compare the exported API of each published module with that of the last tag
	.ci/api

names: ## check that no file names what has no place in it
	.ci/names

# The words after make found are names of bugs.
ifeq (found,$(firstword $(MAKECMDGOALS)))
BUGS := $(wordlist 2,$(words $(MAKECMDGOALS)),$(MAKECMDGOALS))
.PHONY: $(BUGS)
$(BUGS): found ; @:
endif

found: ## make found NAME shows a bug of docs/found.md again, on the tree before its mend; without a name it lists them
	@go run ./internal/found $(BUGS)

stranger: ## a part of test: type what docs/start.md and docs/testing.md have a stranger type, and time it
	go test -count=1 -v -run "TestFirstTenMinutes|TestUnitTestOfAStranger" ./internal/repotest

first: ## run the README's first command, and look at what it prints
	.ci/first

# What an input can be made smaller to is only looked for briefly: it is counted as
# fuzzing, and for long ones Go would do nothing else.
fuzz: ## run each fuzz target of all modules for FUZZTIME (10s)
	@status=0; for at in $$(grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed 's/func //' | sort); do \
		echo "$$at, for $(FUZZTIME)"; \
		(cd "$$(dirname "$${at%:*}")" && go test -run '^$$' -fuzz "^$${at##*:}$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 1s .) || status=1; \
	done; exit $$status

chaos: ## run every scenario in every arena: SCHEDULES in the model, MINIREDIS on miniredis, each REAL times on redis-servers
	.ci/chaos $(SCHEDULES) $(MINIREDIS) $(REAL)

nightly: ## run chaos with fresh seeds for NIGHT (8h), and keep the histories of what fails in FAILURES
	go run ./cmd/redlock chaos --arena all --for $(NIGHT) --save $(FAILURES) --report $(FAILURES)/report.html

servers: ## run tests, chaos and the command on each server of docs/servers.md, or on SERVERS, and write its table
	.ci/servers $(SERVERS)

tables: ## write the generated tables of docs/chaos.md and chaos/testdata/mutants.md anew
	go test ./chaos -count=1 -timeout 20m -run 'TestMutants|TestScenarioTable' -update

picture: ## draw docs/life.svg anew, and with tmux and Chromium docs/top*
	go test ./internal/repotest -count=1 -run TestLifeOfALock -update
	go test ./cmd/redlock -count=1 -v -run 'TestTopInTmux|TestTopPageInChromium' -update

recipes: ## run the recipes, and the guards of package fence, against real databases
	cd recipes && go test $(RACE) -count=1 ./...
	cd recipes/asynq && go test $(RACE) -count=1 ./...

model: ## check the model of the fenced lock exhaustively, and that it fails without each of its rules; needs spin and gcc
	docs/model/check.sh

quickmodel: ## the part of make model that takes five minutes
	docs/model/check.sh quick

release-check: ## all of a release but the upload: tags, fetches, builds, packs into DIST, and runs what is packed
	.ci/release-check $(DIST)

reproducible: ## build the command twice, in two places, and compare the bytes
	.ci/reproducible

bench: ## compare with other libraries on redis-servers of its own; BENCHFLAGS=-help says how
	cd bench && go run . $(BENCHFLAGS)

demo: ## show how a lock changes hands while nodes fail
	go run ./cmd/redlock demo

cover: ## say how much of the root module its tests run, function by function in cover.out
	go test -coverpkg=./... -coverprofile=cover.out ./...
	@go tool cover -func=cover.out | tail -n 1

# On redis-servers make test runs each scenario; the night has more schedules, and all mutants.
ci: REAL = 0
ci: SCHEDULES = 6000
ci: MINIREDIS = 100
ci: MUTANTS = first
ci: UNRACED = |/(adapters|recipes|chaos|bench|fence)(/|$$)|/cmd/redlock/internal/|/internal/(testbed|listing|recording)(/|$$)
ci: first tidy test names vet api quickmodel chaos mutants race ## all of what CI checks
