/* The templates that chat.c has in C, tag by tag in the form of chat_tags. */
#include "text/chat_known.h"

#include <string.h>

/* A tag, and which of a template's texts have it: ' ' all, or one letter's only. */
typedef struct known_tag {
    char text;
    const char *tag;
} known_tag;

#define TURN    "='<|im_start|>'+message.role+'\n'+message.content+'<|im_end|>\n'"
#define DEFAULT "='<|im_start|>system\n*<|im_end|>\n'" /* the asterisk is any text */

/* ChatML: 'p' without a default system prompt, 'q' with one (Qwen2 and before), 'd' with one, the first message taken apart. */
static const known_tag chatml[] = {
    {'d', "%if messages[0].role=='system'"},
    {'d', "='<|im_start|>system\n'+messages[0].content+'<|im_end|>\n'"},
    {'d', "%else"},
    {'d', DEFAULT},
    {'d', "%endif"},
    {' ', "%for message in messages"},
    {'q', "%if loop.first and messages[0].role!='system'"},
    {'q', DEFAULT},
    {'q', "%endif"},
    {'d', "%if not(loop.first and message.role=='system')"},
    {' ', TURN},
    {'d', "%endif"},
    {' ', "%endfor"},
    {' ', "%if add_generation_prompt"},
    {' ', "='<|im_start|>assistant\n'"},
    {' ', "%endif"},
};

/* Qwen3: 'a' the first text, 'b' the one that came later. They differ only in contents that are not strings. */
static const known_tag qwen3[] = {
    {' ', "%if tools"},
    {' ', "='<|im_start|>system\n'"},
    {' ', "%if messages[0].role=='system'"},
    {' ', "=messages[0].content+'\n\n'"},
    {' ', "%endif"},
    {' ', "='# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
          "You are provided with function signatures within <tools></tools> XML tags:\n<tools>'"},
    {' ', "%for tool in tools"},
    {' ', "='\n'"},
    {' ', "=tool|tojson"},
    {' ', "%endfor"},
    {' ', "='\n</tools>\n\nFor each function call, return a json object with function name and arguments within "
          "<tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": <args-json-object>}\n"
          "</tool_call><|im_end|>\n'"},
    {' ', "%else"},
    {' ', "%if messages[0].role=='system'"},
    {' ', "='<|im_start|>system\n'+messages[0].content+'<|im_end|>\n'"},
    {' ', "%endif"},
    {' ', "%endif"},
    {' ', "%set ns=namespace(multi_step_tool=true,last_query_index=messages|length-1)"},
    {' ', "%for message in messages[::-1]"},
    {' ', "%set index=(messages|length-1)-loop.index0"},
    {'a', "%if ns.multi_step_tool and message.role=='user'and not(message.content.startswith('<tool_response>')"
          "and message.content.endswith('</tool_response>'))"},
    {'b', "%if ns.multi_step_tool and message.role=='user'and message.content is string and "
          "not(message.content.startswith('<tool_response>')and message.content.endswith('</tool_response>'))"},
    {' ', "%set ns.multi_step_tool=false"},
    {' ', "%set ns.last_query_index=index"},
    {' ', "%endif"},
    {' ', "%endfor"},
    {' ', "%for message in messages"},
    {'b', "%if message.content is string"},
    {'b', "%set content=message.content"},
    {'b', "%else"},
    {'b', "%set content=''"},
    {'b', "%endif"},
    {' ', "%if(message.role=='user')or(message.role=='system'and not loop.first)"},
    {'a', TURN},
    {'b', "='<|im_start|>'+message.role+'\n'+content+'<|im_end|>\n'"},
    {' ', "%elif message.role=='assistant'"},
    {'a', "%set content=message.content"},
    {' ', "%set reasoning_content=''"},
    {'a', "%if message.reasoning_content is defined and message.reasoning_content is not none"},
    {'b', "%if message.reasoning_content is string"},
    {' ', "%set reasoning_content=message.reasoning_content"},
    {' ', "%else"},
    {'a', "%if'</think>'in message.content"},
    {'a', "%set content=message.content.split('</think>')[-1].lstrip('\n')"},
    {'a', "%set reasoning_content=message.content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n')"},
    {'b', "%if'</think>'in content"},
    {'b', "%set reasoning_content=content.split('</think>')[0].rstrip('\n').split('<think>')[-1].lstrip('\n')"},
    {'b', "%set content=content.split('</think>')[-1].lstrip('\n')"},
    {' ', "%endif"},
    {' ', "%endif"},
    {' ', "%if loop.index0>ns.last_query_index"},
    {' ', "%if loop.last or(not loop.last and reasoning_content)"},
    {' ', "='<|im_start|>'+message.role+'\n<think>\n'+reasoning_content.strip('\n')+'\n</think>\n\n'+content.lstrip('\n')"},
    {' ', "%else"},
    {' ', "='<|im_start|>'+message.role+'\n'+content"},
    {' ', "%endif"},
    {' ', "%else"},
    {' ', "='<|im_start|>'+message.role+'\n'+content"},
    {' ', "%endif"},
    {' ', "%if message.tool_calls"},
    {' ', "%for tool_call in message.tool_calls"},
    {' ', "%if(loop.first and content)or(not loop.first)"},
    {' ', "='\n'"},
    {' ', "%endif"},
    {' ', "%if tool_call.function"},
    {' ', "%set tool_call=tool_call.function"},
    {' ', "%endif"},
    {' ', "='<tool_call>\n{\"name\": \"'"},
    {' ', "=tool_call.name"},
    {' ', "='\", \"arguments\": '"},
    {' ', "%if tool_call.arguments is string"},
    {' ', "=tool_call.arguments"},
    {' ', "%else"},
    {' ', "=tool_call.arguments|tojson"},
    {' ', "%endif"},
    {' ', "='}\n</tool_call>'"},
    {' ', "%endfor"},
    {' ', "%endif"},
    {' ', "='<|im_end|>\n'"},
    {' ', "%elif message.role=='tool'"},
    {' ', "%if loop.first or(messages[loop.index0-1].role!='tool')"},
    {' ', "='<|im_start|>user'"},
    {' ', "%endif"},
    {' ', "='\n<tool_response>\n'"},
    {'a', "=message.content"},
    {'b', "=content"},
    {' ', "='\n</tool_response>'"},
    {' ', "%if loop.last or(messages[loop.index0+1].role!='tool')"},
    {' ', "='<|im_end|>\n'"},
    {' ', "%endif"},
    {' ', "%endif"},
    {' ', "%endfor"},
    {' ', "%if add_generation_prompt"},
    {' ', "='<|im_start|>assistant\n'"},
    {' ', "%if enable_thinking is defined and enable_thinking is false"},
    {' ', "='<think>\n\n</think>\n\n'"},
    {' ', "%endif"},
    {' ', "%endif"},
};

/* A tag against a known one; what stands for the asterisk is left in *any. */
static bool same_tag(const char *tag, const char *known, const char **any, size_t *any_size)
{
    const char *star = strcmp(known, DEFAULT) == 0 ? strchr(known, '*') : NULL;
    if (!star) return strcmp(tag, known) == 0;
    const size_t size = strlen(tag), before = (size_t)(star - known), after = strlen(star + 1);
    if (size < before + after || memcmp(tag, known, before) != 0 || strcmp(tag + size - after, star + 1) != 0) return false;
    *any = tag + before;
    *any_size = size - before - after;
    /* An output of several parts would have a quote of its own in here. */
    for (size_t i = 0; i < *any_size; i++)
        if ((*any)[i] == '\'' && (!i || (*any)[i - 1] != '\\')) return false;
    return true;
}

/* All tags against one text of a known template. */
static bool same_tags(const bytes *tags, const known_tag *known, size_t n, char text, const char **any, size_t *any_size)
{
    const char *at = tags->data, *end = at + tags->size;
    *any = NULL;
    for (size_t i = 0; i < n; i++) {
        if (known[i].text != ' ' && known[i].text != text) continue;
        if (at == end || !same_tag(at, known[i].tag, any, any_size)) return false;
        at += strlen(at) + 1;
    }
    return at == end;
}

/* The quotes of a string in a tag have a backslash before them. */
static bool add_unquoted(bytes *out, const char *text, size_t size)
{
    bool ok = bytes_add(out, "", 0);
    for (size_t i = 0; i < size && ok; i++) {
        if (text[i] == '\\' && i + 1 < size && text[i + 1] == '\'') i++;
        ok = bytes_add(out, text + i, 1);
    }
    return ok;
}

bool chat_recognise(const char *text, size_t size, chat_known *known)
{
    const char *any;
    size_t any_size;
    bytes tags = {0};
    *known = (chat_known){.kind = CHAT_UNKNOWN};
    bool ok = bytes_add(&tags, "", 0) && chat_tags(text, size, &tags);
    for (const char *c = "ab"; *c && ok; c++) {
        if (!same_tags(&tags, qwen3, sizeof qwen3 / sizeof *qwen3, *c, &any, &any_size)) continue;
        known->kind = CHAT_QWEN3;
        known->null_is_empty = *c == 'b';
    }
    for (const char *c = "pqd"; *c && ok; c++) {
        if (!same_tags(&tags, chatml, sizeof chatml / sizeof *chatml, *c, &any, &any_size)) continue;
        known->kind = CHAT_CHATML;
        if (any) ok = add_unquoted(&known->default_system, any, any_size);
    }
    bytes_free(&tags);
    return ok;
}
