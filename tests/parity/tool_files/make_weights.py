#!/usr/bin/env python3
"""Writes weights and archives with the writers of other tools: make_weights.py SHAPES FOLDER WRITER...

SHAPES is that of make_labels.py. FOLDER/expected.json gets the tensors that were put in, as bytes.
The committed files were written by PyTorch 1.13 and 2.6 (compiled), pytorch-lightning 2.2.5, huggingface_hub 2.4.0 with
safetensors 0.8.0, and webdataset 1.0.2.
"""

import json
import os
import pathlib
import shutil
import sys
import tempfile

CLASSES = 3


def network():
    import torch
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, bias=False), torch.nn.BatchNorm2d(4), torch.nn.ReLU(),
                              torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(4, CLASSES))
    net(torch.randn(2, 3, 8, 8))  # running statistics
    return net


class Files:
    def __init__(self, shapes, folder):
        self.shapes, self.folder = shapes, folder
        self.path = folder / "expected.json"
        self.expected = json.loads(self.path.read_text()) if self.path.exists() else {}

    def expect(self, name, state):
        import torch
        kinds = {torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64"}
        self.expected[name] = {
            key: [kinds[value.dtype], list(value.shape), value.detach().reshape(-1).view(torch.uint8).numpy().tobytes().hex()]
            for key, value in state.items()}

    def finish(self):
        self.path.write_text(json.dumps(self.expected, indent=1, sort_keys=True) + "\n")


def lightning(files):
    """Trainer.save_checkpoint after a training with callbacks, hyperparameters and an optimizer."""
    import pytorch_lightning as pl
    import torch

    class Module(pl.LightningModule):
        def __init__(self, lr=0.1, widths=(4, 4), name="tiny"):
            super().__init__()
            self.save_hyperparameters()
            self.model = network()

        def training_step(self, batch, _):
            loss = torch.nn.functional.cross_entropy(self.model(batch[0]), batch[1])
            self.log("loss", loss)
            return loss

        def configure_optimizers(self):
            optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
            return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1)]

    data = torch.utils.data.TensorDataset(torch.randn(4, 3, 8, 8), torch.tensor([0, 1, 2, 0]))
    with tempfile.TemporaryDirectory() as folder:
        callbacks = [pl.callbacks.ModelCheckpoint(dirpath=folder, monitor="loss"), pl.callbacks.EarlyStopping("loss")]
        trainer = pl.Trainer(max_epochs=2, accelerator="cpu", logger=False, callbacks=callbacks, default_root_dir=folder,
                             enable_progress_bar=False, enable_model_summary=False, log_every_n_steps=1)
        module = Module()
        trainer.fit(module, torch.utils.data.DataLoader(data, batch_size=2))
        trainer.save_checkpoint(str(files.folder / "lightning.ckpt"))
    files.expect("lightning.ckpt", module.model.state_dict())


def distributed(files):
    """DistributedDataParallel's state_dict within a checkpoint, and AveragedModel's."""
    import torch
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29561")
    torch.distributed.init_process_group("gloo", rank=0, world_size=1)
    net = torch.nn.parallel.DistributedDataParallel(network())
    torch.save({"epoch": 3, "arch": "tiny", "best_acc1": torch.tensor(71.5), "state_dict": net.state_dict(),
                "optimizer": torch.optim.SGD(net.parameters(), 0.1, momentum=0.9).state_dict()},
               files.folder / "distributed.pth.tar")
    files.expect("distributed.pth.tar", network().state_dict())
    averaged = torch.optim.swa_utils.AveragedModel(network())
    averaged.update_parameters(network())
    torch.save(averaged.state_dict(), files.folder / "averaged.pth")
    state = {key.removeprefix("module."): value for key, value in averaged.state_dict().items()}
    files.expect("averaged.pth", state)


def compiled(files):
    import torch
    torch.save(torch.compile(network().half()).state_dict(), files.folder / "compiled.pt")
    files.expect("compiled.pt", network().half().state_dict())


def sharded(files):
    """save_torch_state_dict, in several files with an index."""
    import torch
    from huggingface_hub import save_torch_state_dict

    root = files.folder / "sharded"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    state = {**network().state_dict(), "brain": torch.arange(7).bfloat16() / 3, "half": torch.arange(5).half() / 3}
    save_torch_state_dict(state, str(root), max_shard_size=300)
    files.expect("sharded/model.safetensors.index.json", state)


def web_dataset(files):
    """ShardWriter: two archives of the drawn images."""
    import webdataset
    root = files.folder / "web_dataset"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    with webdataset.ShardWriter(str(root / "train-%06d.tar"), maxcount=2, verbose=0, mtime=0) as sink:
        for i, path in enumerate(sorted((files.shapes / "train").glob("*.jpg"))[:4]):
            sink.write({"__key__": f"drawn/{i:05}", "jpg": path.read_bytes(), "cls": i % CLASSES, "json": {"width": 96}})


def main(shapes, folder, *writers):
    files = Files(pathlib.Path(shapes), pathlib.Path(folder))
    for writer in writers:
        globals()[writer](files)
    files.finish()


if __name__ == "__main__":
    main(*sys.argv[1:])
