//go:build !linux

package main

import "go.uber.org/zap"

// Only Linux has systemd.

func notifyStarted(*zap.Logger, func() error) (stopping func()) { return func() {} }

func notifyReloading(*zap.Logger) (done func()) { return func() {} }
