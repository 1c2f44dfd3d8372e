"""FastAPI server that classifies a JPEG with a torchvision model: serve_peer.py MODEL PORT THREADS.

Follows the FastAPI documentation: uvicorn, a route in the thread pool, one forward pass per request.
"""
import io
import sys

import torch
import torchvision
import uvicorn
from fastapi import Body, FastAPI
from PIL import Image

name, port, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.set_num_threads(threads)
model = getattr(torchvision.models, name)(weights=None).eval()
preprocess = torchvision.transforms.Compose([
    torchvision.transforms.Resize(256), torchvision.transforms.CenterCrop(224), torchvision.transforms.ToTensor(),
    torchvision.transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))])
app = FastAPI()


@app.post("/predictions/default")
def predict(body: bytes = Body(media_type="application/octet-stream")):
    with torch.inference_mode():
        pixels = preprocess(Image.open(io.BytesIO(body)).convert("RGB"))
        values, classes = model(pixels[None]).softmax(1)[0].topk(5)
    return [{"class": c, "probability": p} for c, p in zip(classes.tolist(), values.tolist())]


uvicorn.run(app, host="127.0.0.1", port=port, log_level="error")
