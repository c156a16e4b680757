"""The enlarged verifier computes what the small one computes: logits equal bit for bit on the small vocabulary, 0 beyond it.

  python check_large.py OUTRIDER SMALL_DIR BIG_DIR
"""
import subprocess, sys, tempfile
import numpy as np

outrider, small, big = sys.argv[1:]
IDS = "4094,361,198,348,343,258,363,362,13,4095,198,4094,313,198,648,437"


def logits(folder, path):
    subprocess.run([outrider, "probe", f"{folder}/verifier.trtc", "--ids", IDS, "--dump", path], check=True, stdout=subprocess.DEVNULL)
    return np.fromfile(path, "<f4").reshape(len(IDS.split(",")), -1)


with tempfile.NamedTemporaryFile() as a, tempfile.NamedTemporaryFile() as b:
    few, many = logits(small, a.name), logits(big, b.name)
n = few.shape[1]
same = (few.view(np.uint32) == many[:, :n].view(np.uint32)).all(axis=1)
beyond = np.abs(many[:, n:]).max()
print(f"{same.sum()} of {len(same)} rows equal bit for bit over {n} ids; largest magnitude beyond: {beyond}")
sys.exit(0 if same.all() and beyond == 0 else 3)
