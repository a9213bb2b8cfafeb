// Does what no handler should: {"do": "panic" | "loop" | "hog" | "follow", "type"}.

#include "jobq/jobq.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static struct jobq_answer follow(const char *job_type) {
    char *error;
    struct jobq_new_job job = {.job_type = job_type, .payload = "{\"n\": 21}"};
    char *id = jobq_enqueue(&job, &error);
    return id ? jobq_done("{\"id\": \"%s\"}", id) : jobq_fatal("%s", error);
}

struct jobq_answer handle(const struct jobq_job *job) {
    char what[16] = "", type[80] = "";
    json_string(job->payload, "do", what, sizeof what);
    json_string(job->payload, "type", type, sizeof type);
    if (strcmp(what, "panic") == 0)
        assert(!"hostile to the end");
    if (strcmp(what, "loop") == 0)
        for (volatile unsigned turns = 0;; turns++) {
        }
    if (strcmp(what, "hog") == 0)
        for (;;) {
            static char *volatile last;
            if (!(last = malloc(1 << 20)))
                return jobq_fatal("no memory is left");
            memset(last, 1, 1 << 20);
        }
    if (strcmp(what, "follow") == 0)
        return follow(type);
    return jobq_fatal("no such deed");
}
