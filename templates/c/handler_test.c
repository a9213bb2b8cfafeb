// Tests of handler.c natively, without WebAssembly: `make test`. This file replaces the host.

#include "jobq/jobq.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char logged[1024];
static int failures;

void jobq_log(enum jobq_level level, const char *format, ...) {
    (void)level;
    va_list args;
    va_start(args, format);
    vsnprintf(logged, sizeof logged, format, args);
    va_end(args);
}

static void expect(const char *payload, enum jobq_answer_kind kind, const char *text, uint64_t after_ms) {
    struct jobq_job job = {"0193a5c2-7f3b-7c1e-9d0a-3f6b8c2d4e10", "__name__", payload, 1, 3};
    struct jobq_answer answer = handle(&job);
    const char *got = answer.text ? answer.text : "";
    if (answer.kind != kind || strcmp(got, text) != 0 || answer.after_ms != after_ms) {
        fprintf(stderr, "FAIL %s: answer %d `%s` after %llu ms\n", payload, answer.kind, got,
                (unsigned long long)answer.after_ms);
        failures++;
    }
    free(answer.text);
}

int main(void) {
    expect("{\"n\": 2}", JOBQ_DONE, "{\"doubled\":4}", 0);
    if (strcmp(logged, "doubling 2, attempt 1 of 3") != 0) {
        fprintf(stderr, "FAIL log: `%s`\n", logged);
        failures++;
    }
    expect("{\"tags\": [1, {\"n\": 7}], \"service\": \"\\u0075p\", \"n\": 3}", JOBQ_DONE, "{\"doubled\":6}", 0);
    expect("{\"n\": 2, \"service\": \"down\"}", JOBQ_RETRY, "the service is down", 0);
    expect("{\"n\": 2, \"service\": \"busy\"}", JOBQ_RETRY_AFTER, "the service is busy", 30000);
    expect("{\"n\": 2, \"service\": \"closed\"}", JOBQ_SNOOZE, "", 60000);
    expect("{\"n\": -1}", JOBQ_FATAL, "`n` is -1, which is not in 0 to 1000000", 0);
    expect("{\"n\": 2.5}", JOBQ_FATAL, "bad payload: `n` is not an integer", 0);
    expect("{\"n\": 2", JOBQ_FATAL, "bad payload: `n` is not an integer", 0);
    expect("[2]", JOBQ_FATAL, "bad payload: `n` is not an integer", 0);
    expect("{\"n\": 2, \"service\": 1}", JOBQ_FATAL, "bad payload: `service` is not a string of at most 15 bytes", 0);
    printf(failures ? "%d failed\n" : "all passed\n", failures);
    return failures != 0;
}
