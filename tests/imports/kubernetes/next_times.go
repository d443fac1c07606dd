// What the library of the Kubernetes controller itself answers: one question a line (JSON: text, zone, after in epoch
// seconds, how many), one line of answers each: the epoch seconds, or null where it refuses the text.
// `GO111MODULE=off GOPATH=/usr/share/gocode go run next_times.go < questions`, with Debian's golang-github-robfig-cron-dev.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/robfig/cron"
)

type question struct {
	Text  string
	Zone  string
	After int64
	Limit int
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		answer, _ := json.Marshal(next(asked))
		fmt.Println(string(answer))
	}
}

func next(asked question) []int64 {
	zone, err := time.LoadLocation(asked.Zone)
	if err != nil {
		panic(err)
	}
	schedule, err := cron.ParseStandard(asked.Text)
	if err != nil {
		return nil
	}
	found := []int64{}
	for at := time.Unix(asked.After, 0).In(zone); len(found) < asked.Limit; {
		if at = schedule.Next(at); at.IsZero() {
			break
		}
		found = append(found, at.Unix())
	}
	return found
}
