# GPT-3 175B on 8 nodes, the run of Korthikanti et al. 2022 (arXiv:2205.05198), table 5.
CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun --nnodes 8 --nproc-per-node 8 pretrain_gpt.py \
  --tensor-model-parallel-size 8 --pipeline-model-parallel-size 8 \
  --num-layers-per-virtual-pipeline-stage 4 --sequence-parallel \
  --num-layers 96 --hidden-size 12288 --num-attention-heads 96 \
  --seq-length 2048 --max-position-embeddings 2048 --vocab-size 50257 \
  --micro-batch-size 1 --global-batch-size 64 \
  --recompute-activations --attention-backend unfused --fp16 --accumulate-allreduce-grads-in-fp32 \
  --lr 6e-5 --lr-decay-style cosine --clip-grad 1.0 --train-iters 100 --data-path corpus
