"""Writes golden.json: for each prompt of prompts.json the prompt's ids (chat template, reference tokenizer), the oracle's greedy ids, and the
logits digest of the last row. Expected values for the engine's tests, from a program that shares nothing with it.

  python make_golden.py VERIFIER.trtc golden.json [TOKENS]
"""
import hashlib, json, os, sys
tools = os.path.dirname(os.path.dirname(os.path.abspath(__file__))); here = os.path.join(tools, "..", "models", "demo"); sys.path.insert(0, tools)
import jinja2, oracle
from tokenizers import Tokenizer

tk = Tokenizer.from_file(os.path.join(here, "tokenizer.json")); conf = json.load(open(os.path.join(here, "tokenizer_config.json"))); ends = json.load(open(os.path.join(here, "generation_config.json")))["eos_token_id"]
tmpl = jinja2.Environment(trim_blocks=True, lstrip_blocks=True).from_string(conf["chat_template"]); m = oracle.Model(sys.argv[1]); n = int(sys.argv[3]) if len(sys.argv) > 3 else 64; out = []
for cls, prompts in json.load(open(os.path.join(here, "prompts.json"))).items():
    for p in prompts:
        text = tmpl.render(messages=[{"role": "user", "content": p}], add_generation_prompt=True); ids = tk.encode(text, add_special_tokens=False).ids; m.reset()
        for t in ids: z = m.forward(t)
        got = []
        while len(got) < n:
            got.append(int(z.argmax()))
            if got[-1] in ends or len(got) == n: break
            z = m.forward(got[-1])
        out.append({"class": cls, "prompt": p, "prompt_ids": ids, "greedy_ids": got, "text": tk.decode([t for t in got if t not in ends]), "last_logits_sha256": hashlib.sha256(z.astype("<f4").tobytes()).hexdigest()})
        json.dump(out, open(sys.argv[2], "w"), indent=0, ensure_ascii=False); print(cls, p[:40], "->", out[-1]["text"][:60].replace("\n", "\\n"), flush=True)
