"""The course: its lessons in order, each with its exercises in order. //learn reads this list, too.

A lesson is a folder; `tools/new_lesson PHASE/NN_TOPIC` makes one. An exercise is a region in a source file, and
exercises/NAME.txt in a lesson's folder (docs/exercises_for_authors.md).
"""

COURSE = {
    "phase1_building_blocks/01_vector_add": [
        "vector_add_index",
        "vector_add_grid",
        "vector_add_stride",
    ],
    "phase1_building_blocks/02_transpose": [
        "transpose_naive",
        "transpose_coalesced",
        "transpose_tiled",
        "transpose_padded",
    ],
    "phase1_building_blocks/03_matmul_naive": [
        "matmul_naive",
        "matmul_coalesced",
    ],
    "phase1_building_blocks/04_matmul_tiled": [
        "matmul_tiled_load",
        "matmul_tiled_barriers",
    ],
    "phase1_building_blocks/05_matmul_register_tiled": [
        "matmul_register_1d",
        "matmul_register_2d",
    ],
    "phase1_building_blocks/06_matmul_tuned": [
        "matmul_vectorised",
    ],
    "phase1_building_blocks/07_activations": [
        "activation_sigmoid",
        "activation_tanh",
        "activation_leaky_backward",
        "activation_tanh_backward",
        "activation_quads",
    ],
    "phase1_building_blocks/08_softmax": [
        "softmax_naive",
        "softmax_tree",
        "softmax_online",
        "softmax_backward",
    ],
    "phase1_building_blocks/09_losses": [
        "loss_bce_logits",
        "loss_block_sum",
        "cross_entropy_fill",
    ],
    "phase1_building_blocks/10_softmax_cross_entropy": [
        "cross_entropy_loss",
        "cross_entropy_gradient",
        "cross_entropy_fetch",
    ],
    "phase1_building_blocks/11_random_init": [
        "random_uniform_one",
        "random_uniform_float4",
        "random_normal",
    ],
    "phase1_building_blocks/12_dropout": [
        "dropout_one",
        "dropout_float4",
        "softmax_dropout",
    ],
    "phase1_building_blocks/13_fused_batchnorm_relu_softmax": [
        "batchnorm_fold",
        "batchnorm_columns",
        "batchnorm_relu_softmax",
        "batchnorm_parameters",
    ],
    "phase1_building_blocks/14_attention": [
        "attention_scores",
        "attention_online",
        "attention_row_maximum",
        "attention_score_gradient",
        "attention_wmma_scores",
    ],
    "phase1_building_blocks/15_matmul_tensor_core": [
        "bfloat16_round",
        "matmul_wmma_naive",
        "matmul_wmma_fragments",
        "matmul_tile_order",
        "matmul_swizzle",
        "wgmma_descriptor",
        "matmul_wgmma_consume",
    ],
    "phase2_mlp/01_perceptron": [
        "perceptron_forward",
        "perceptron_gradient",
        "perceptron_update",
    ],
    "phase2_mlp/02_xor": [
        "hidden_backward",
    ],
    "phase2_mlp/03_mlp": [
        "mlp_weight_gradient",
        "linear_bias_gradient",
        "mlp_delta",
        "sgd_momentum",
    ],
    "phase2_mlp/04_idx_files": [
        "idx_big_endian",
    ],
    "phase2_mlp/05_batches": [
        "batch_normalize",
        "batch_gather_warps",
        "batch_cipher",
    ],
    "phase2_mlp/06_streams": [
        "feed_overlapped",
        "feed_staged",
    ],
    "phase2_mlp/07_mlp_mnist": [],
    "phase2_mlp/08_mlp_one_kernel": [
        "mlp_step_counter",
        "mlp_fused_delta",
        "mlp_grid_barrier",
        "mlp_step_launch",
    ],
    "phase3_cnn/01_conv2d_naive": [
        "conv2d_naive_output",
        "conv2d_naive_padding",
        "conv2d_row_reuse",
    ],
    "phase3_cnn/02_conv2d_im2col": [
        "conv2d_im2col_index",
        "conv2d_col2im_gather",
        "conv2d_im2col_chunk",
    ],
    "phase3_cnn/03_conv2d_implicit_gemm": [
        "conv2d_halo_patch",
        "conv2d_gemm_element",
        "conv2d_gemm_epilogue",
        "conv2d_gemm_place",
        "conv2d_nhwc_store",
        "conv2d_nhwc_gather",
    ],
    "phase3_cnn/04_conv2d_winograd": [
        "winograd_input_transform",
        "winograd_ragged_tile",
        "winograd_point_matrices",
    ],
    "phase3_cnn/05_conv2d_fft": [
        "fft_butterfly",
        "fft_real_pair",
        "fft_conjugate_product",
        "fft_tile_overlap",
    ],
    "phase3_cnn/06_conv2d_backward": [
        "backward_input_gather",
        "backward_weight_atomic",
        "backward_weight_split",
        "backward_bias_sum",
    ],
    "phase3_cnn/07_conv2d_depthwise": [
        "depthwise_strip",
        "depthwise_weight",
        "transposed_scatter",
        "transposed_phases",
    ],
    "phase3_cnn/08_conv2d_duel": [
        "conv2d_small_products",
        "conv2d_small_spread",
        "duel_cost",
    ],
    "phase3_cnn/09_pooling": [
        "max_pool_window",
        "pool_backward_gather",
        "avg_pool_padding",
        "global_avg_reduce",
    ],
    "phase3_cnn/10_batch_norm": [
        "batch_norm_welford_merge",
        "batch_norm_running_variance",
        "batch_norm_backward_dx",
        "batch_norm_fold",
        "layer_norm_statistics",
        "layer_norm_moments",
        "layer_norm_weight_gradient",
    ],
    "phase3_cnn/11_residual": [
        "add_relu_forward",
        "add_relu_backward",
        "add_relu_mean",
    ],
    "phase3_cnn/12_lenet_mnist": [
        "map_peaks_lane",
        "map_peaks_merge",
    ],
    "phase3_cnn/13_fashion_mnist": [],
    "phase3_cnn/14_resnet_mnist": [],
    "phase3_cnn/15_cifar10": [
        "cifar_record_pixel",
    ],
    "phase3_cnn/16_one_step": [
        "conv_pool_largest",
        "conv_pool_taps",
        "chain_products",
    ],
    "phase4_training/01_sgd": [
        "sgd_nesterov",
        "tensor_of_block",
        "tensor_edges",
    ],
    "phase4_training/02_adam": [
        "adam_step",
        "adamw_decay",
    ],
    "phase4_training/03_rmsprop": [
        "rmsprop_centered",
        "muon_momentum",
        "muon_polynomial",
    ],
    "phase4_training/04_lr_schedules": [
        "schedule_cycle",
        "schedule_cosine",
        "smooth_warp",
        "smooth_carry",
    ],
    "phase4_training/05_regularization": [
        "soft_loss",
        "soft_gradient",
        "mixup_pair",
        "ema_update",
    ],
    "phase4_training/06_augmentation": [
        "augmentation_flip",
        "augmentation_cutout",
        "augmentation_bilinear",
        "augmentation_colour",
    ],
    "phase4_training/07_training_loop": [
        "clip_warp_sum",
        "clip_stride",
        "confusion_answer",
        "confusion_end",
    ],
    "phase4_training/08_train": [
        "trial_rate",
        "trial_steps",
        "lowest_finite",
    ],
    "phase4_training/09_mixed_precision": [
        "bf16_round",
        "loss_scale_check",
        "loss_scale_update",
    ],
    "phase5_production/01_cudnn_layers": [
        "dnn_tensor",
        "dnn_convolution",
        "dnn_scale",
        "dnn_algorithm",
    ],
    "phase5_production/02_cudnn_duel": [
        "memory_peak",
    ],
    "phase5_production/03_resnet18": [
        "preprocess_triangle",
        "preprocess_row_sum",
        "preprocess_normalize",
    ],
    "phase5_production/04_resnet18_fused": [
        "add_relu_half",
        "fold_shortcut",
        "stem_pool_window",
        "pool_linear_product",
    ],
    "phase5_production/05_pytorch": [
        "nncuda_events",
        "nncuda_label",
        "nncuda_workspace",
    ],
    "phase5_production/06_onnx_export": [
        "onnx_varint",
        "onnx_pads",
    ],
    "phase5_production/07_onnx_import": [
        "nd_place",
        "nd_reduce_tree",
    ],
    "phase5_production/08_engine": [
        "depthwise_run",
        "concat_runs",
    ],
    "phase5_production/09_int8": [
        "int8_round",
        "int8_dp4a",
        "vnni_signed",
    ],
    "phase5_production/10_onnx_runtime": [
        "top_k_before",
        "picture_bytes",
    ],
    "phase5_production/11_runtime_duel": [
        "duel_cosine",
        "duel_worse",
    ],
}
