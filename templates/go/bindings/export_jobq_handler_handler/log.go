package export_jobq_handler_handler

import (
	"bytes"
	"context"
	"log/slog"
	"strings"

	"plugin.local/__ident__/bindings/jobq_handler_log"
)

func init() {
	slog.SetDefault(slog.New(newHostLog()))
}

// hostLog sends log records to the host, as `message key=value …`.
type hostLog struct {
	// Writes only the keys and values, to text.
	slog.Handler
	text *bytes.Buffer
}

func newHostLog() hostLog {
	text := &bytes.Buffer{}
	keysAndValues := func(groups []string, attr slog.Attr) slog.Attr {
		if len(groups) == 0 && (attr.Key == slog.TimeKey || attr.Key == slog.LevelKey || attr.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return attr
	}
	options := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: keysAndValues}
	return hostLog{slog.NewTextHandler(text, options), text}
}

func (log hostLog) Handle(ctx context.Context, record slog.Record) error {
	log.text.Reset()
	if err := log.Handler.Handle(ctx, record); err != nil {
		return err
	}
	level := jobq_handler_log.Level_Debug
	switch {
	case record.Level >= slog.LevelError:
		level = jobq_handler_log.Level_Error
	case record.Level >= slog.LevelWarn:
		level = jobq_handler_log.Level_Warn
	case record.Level >= slog.LevelInfo:
		level = jobq_handler_log.Level_Info
	}
	jobq_handler_log.Write(level, strings.TrimSpace(record.Message+" "+log.text.String()))
	return nil
}

func (log hostLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return hostLog{log.Handler.WithAttrs(attrs), log.text}
}

func (log hostLog) WithGroup(name string) slog.Handler {
	return hostLog{log.Handler.WithGroup(name), log.text}
}
