package config

import (
	"errors"
	"regexp"
	"strconv"
	"time"
)

// A Date is when a log file is moved away: at a minute of each hour, of an hour
// of each day, of a day of each week or of each month.
type Date struct {
	minute  int // of the hour
	hour    int // of the day; -1 is each
	weekday int // Sunday is 0; -1 is each
	day     int // of the month; -1 is each
}

// datePattern has RabbitMQ's parts: M the day of the month or W that of the
// week, D the hour, H the minute.
var datePattern = regexp.MustCompile(`^\$(?:M(\d+)|W(\d))?(?:D(\d+))?(?:H(\d+))?$`)

// ParseDate reads a date as log.file.rotation.date has it: $D0 is each
// midnight, $D23H30 each day at 23:30, $W0D0 each Sunday, $M1D0 the first of
// each month, $H0 each hour.
func ParseDate(text string) (Date, error) {
	bad := errors.New("want a date such as $D0 for each midnight, $W0D0 for Sundays, $M1D0 for the first of the month, or $H0 for each hour")
	m := datePattern.FindStringSubmatch(text)
	if m == nil || text == "$" {
		return Date{}, bad
	}
	number := func(s string, missing int) int {
		if s == "" {
			return missing
		}
		n, _ := strconv.Atoi(s) // digits only; too many are too large below
		return n
	}
	d := Date{minute: number(m[4], 0), hour: number(m[3], -1), weekday: number(m[2], -1), day: number(m[1], -1)}
	if (d.weekday >= 0 || d.day >= 0) && d.hour < 0 {
		d.hour = 0
	}
	if len(m[4]) > 2 || len(m[3]) > 2 || len(m[1]) > 2 || d.minute > 59 || d.hour > 23 || d.weekday > 6 || d.day == 0 || d.day > 31 {
		return Date{}, bad
	}
	return d, nil
}

// Next is the first such time after t, in t's place on earth. In months without
// the day it is skipped.
func (d Date) Next(t time.Time) time.Time {
	if d.hour < 0 {
		next := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), d.minute, 0, 0, t.Location())
		for !next.After(t) {
			next = next.Add(time.Hour)
		}
		return next
	}
	for days := 0; ; days++ {
		next := time.Date(t.Year(), t.Month(), t.Day()+days, d.hour, d.minute, 0, 0, t.Location())
		if next.After(t) && (d.weekday < 0 || int(next.Weekday()) == d.weekday) && (d.day < 0 || next.Day() == d.day) {
			return next
		}
	}
}
