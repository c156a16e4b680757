#include "cli/interrupt.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include "cli/console.h"

static _Atomic(outrider_session *) watched;
static volatile sig_atomic_t seen;

/* The handler is installed for one signal only, so a second one meets the default action and ends the process. */
static void on_interrupt(int number)
{
    (void)number;
    outrider_session *session = atomic_load(&watched);
    seen = 1;
    if (session) {
        outrider_session_cancel(session);
        return;
    }
    console_abandon();
    _exit(console_exit_code(OUTRIDER_CANCELLED));
}

void interrupt_open(void)
{
    struct sigaction before, action = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    if (!sigaction(SIGINT, NULL, &before) && before.sa_handler == SIG_IGN) return;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
}

void interrupt_watch(outrider_session *session) { atomic_store(&watched, session); }

bool interrupt_seen(void) { return seen != 0; }
