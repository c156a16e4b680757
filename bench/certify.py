"""27,648 tokens of a pair, drafted against plain, prompt by prompt and resumable: each finished prompt is one JSON line of RECORD; prompts that stand there
already are skipped. Ends with exit 3 at the first difference.

  python bench/certify.py OUTRIDER PAIR_FOLDER RECORD [--tokens 27648] [--draft-length auto] [-- more arguments of `outrider verify`]
"""
import argparse, json, os, platform, subprocess, sys, tempfile, time

p = argparse.ArgumentParser()
p.add_argument("outrider"), p.add_argument("folder"), p.add_argument("record")
p.add_argument("--tokens", type=int, default=27648)
p.add_argument("--draft-length", default="auto")
a, more = p.parse_known_args()
more = [m for m in more if m != "--"]

prompts = [(c, q) for c, qs in json.load(open(os.path.join(a.folder, "prompts.json"))).items() for q in qs]
done = {}
if os.path.exists(a.record):
    done = {(r["class"], r["prompt"]): r for r in map(json.loads, open(a.record))}
commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()
for i, (name, prompt) in enumerate(prompts):
    if (name, prompt) in done:
        continue
    tokens = a.tokens // len(prompts) + (i < a.tokens % len(prompts))
    with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
        json.dump({name: [prompt]}, f)
        f.flush()
        start = time.time()
        run = subprocess.run([a.outrider, "verify", a.folder, "--json", "--prompts", f.name, "--tokens", str(tokens),
                              "--draft-length", a.draft_length, *more], capture_output=True, text=True)
    if run.returncode not in (0, 3):
        sys.exit(f"{name}: {run.stderr.strip()}")
    v = json.loads(run.stdout)
    c = v["classes"][0]
    row = {"class": name, "prompt": prompt, "tokens": v["tokens"], "divergences": v["divergences"], "first_divergence": v["first_divergence"],
           "acceptance": v["acceptance"], "plain_tok_s": c["plain_tok_s"], "drafted_tok_s": c["drafted_tok_s"], "draft_length": a.draft_length,
           "ids_digest": v["ids_digest"], "logits_digest": v["logits_digest"], "seconds": round(time.time() - start, 1),
           "commit": commit, "machine": platform.machine()}
    done[name, prompt] = row
    with open(a.record, "a") as f:
        f.write(json.dumps(row) + "\n")
    print(f"{i + 1}/{len(prompts)} {name}: {row['tokens']} tokens, {row['divergences']} divergences", file=sys.stderr, flush=True)
rows = [done[q] for q in prompts]
tokens, bad = sum(r["tokens"] for r in rows), sum(r["divergences"] for r in rows)
print(f"{tokens} tokens compared, {bad} divergences")
sys.exit(3 if bad else 0)
