/* Ctrl-C: the first one ends the answer that is running, a second one the process. */
#ifndef CLI_INTERRUPT_H
#define CLI_INTERRUPT_H

#include <stdbool.h>

#include "outrider.h"

/* From here on an interrupt ends the process with code 130 and a tidy terminal, unless a session is watched. Does nothing where
 * interrupts were ignored when the process began. */
void interrupt_open(void);

/* An interrupt cancels what this session generates, and is remembered. NULL: none is watched. */
void interrupt_watch(outrider_session *session);

/* Whether there was one. Callers whose on_text returns !interrupt_seen() lose none that came just before the answer began. */
bool interrupt_seen(void);

#endif
