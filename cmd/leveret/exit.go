package main

import (
	"errors"
	"fmt"
	"net/http"
)

// The exit codes of RabbitMQ's tools, which took them from sysexits.h.
const (
	exitFailure     = 1  // the broker did not start or broke
	exitUsage       = 64 // a command, option or argument that does not exist
	exitData        = 65 // what an argument names does not exist or is wrong
	exitNoUser      = 67 // an argument names a user that does not exist
	exitUnavailable = 69 // no broker there, or a check that failed
	exitSoftware    = 70 // the broker refused or failed
	exitTimeout     = 75
	exitNoAccess    = 77 // the login is wrong, or the user may not; RabbitMQ's tools have no login
	exitConfig      = 78 // the configuration is wrong
)

// An exitError ends the program with a code and a text for people.
type exitError struct {
	code int
	text string
	// bare says that the command was used rightly, although the code is
	// exitUsage: RabbitMQ's tools have some of those.
	bare bool
}

func (e *exitError) Error() string { return e.text }

func exitf(code int, format string, args ...any) *exitError {
	return &exitError{code: code, text: fmt.Sprintf(format, args...)}
}

// loginHint says how to log in; the options have another name in rabbitmqadmin.
const loginHint = "set LEVERET_USER and LEVERET_PASSWORD, or see the options in --help"

// explained turns the error of a command into what the user is told. Errors
// that already say it stay as they are.
func explained(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*exitError](err); ok {
		return err
	}
	e, ok := errors.AsType[*apiError](err)
	if !ok {
		return exitf(exitSoftware, "%v", err)
	}
	switch {
	case e.status == http.StatusUnauthorized && e.kind == "not_authorised":
		return exitf(exitNoAccess, "%s; log in as a user who may: %s", e.reason, loginHint)
	case e.status == http.StatusUnauthorized:
		return exitf(exitNoAccess, "the broker refuses the login; log in as another user: %s", loginHint)
	case e.status == http.StatusServiceUnavailable:
		return exitf(exitUnavailable, "%s", e.reason)
	case e.status >= http.StatusInternalServerError || e.status == http.StatusTooManyRequests:
		return exitf(exitSoftware, "%s", e.reason)
	}
	return exitf(exitData, "%s", e.reason)
}

// isStatus says whether an error is an answer of the API with this status.
func isStatus(err error, status int) bool {
	e, ok := errors.AsType[*apiError](err)
	return ok && e.status == status
}

// orMissing gives a 404 a text that says what is missing, and a code.
func orMissing(err error, code int, format string, args ...any) error {
	if isStatus(err, http.StatusNotFound) {
		return exitf(code, format, args...)
	}
	return err
}

// orInvalid makes the refusal of a policy or parameter RabbitMQ's exit code
// for it.
func orInvalid(err error) error {
	if e, ok := errors.AsType[*apiError](err); ok && e.status == http.StatusBadRequest {
		return exitf(exitUnavailable, "%s", e.reason)
	}
	return err
}
