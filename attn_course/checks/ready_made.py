"""What torch has ready made of what exercises ask for, by the names that it goes by there.

An exercise whose `may_use` rules such a thing out carries its names as `rules_out`.
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ATTENTION = _names(
    """
    scaled_dot_product_attention MultiheadAttention multi_head_attention_forward Transformer
    TransformerEncoder TransformerEncoderLayer TransformerDecoder TransformerDecoderLayer
    flex_attention varlen_attn _scaled_dot_product_attention _native_multi_head_attention
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_efficient_attention _scaled_dot_product_attention_math
    _scaled_dot_product_cudnn_attention _scaled_dot_product_fused_attention_overrideable
    _scaled_dot_product_attention_math_for_mps _flash_attention_forward
    _efficient_attention_forward _cudnn_attention_forward _transformer_encoder_layer_fwd
    _triton_multi_head_attention _triton_scaled_dot_attention
    """
)
"""Attention, and the layers that have it in them."""

LOSS = _names(
    """
    cross_entropy nll_loss CrossEntropyLoss NLLLoss cross_entropy_loss nll_loss_nd
    linear_cross_entropy LinearCrossEntropyLoss nll_loss_forward nll_loss2d NLLLoss2d
    nll_loss2d_forward AdaptiveLogSoftmaxWithLoss
    """
)
"""The cross-entropy."""

SOFTMAX = (
    ATTENTION
    | LOSS
    | _names(
        """
    softmax log_softmax Softmax LogSoftmax softmin Softmin Softmax2d _softmax _log_softmax
    safe_softmax _safe_softmax special_softmax special_log_softmax _masked_softmax
    _sparse_softmax _sparse_log_softmax gumbel_softmax
    """
    )
)
"""The softmax: attention and the loss have one in them, which one can get out of them."""

EMBEDDING = _names(
    """
    embedding Embedding embedding_bag EmbeddingBag _embedding_bag
    """
)
"""Looking rows up in a table."""

ENTROPY = LOSS | _names(
    """
    entr special_entr entropy Categorical distributions
    """
)
"""The entropy: the loss of a distribution against itself is one."""

RECURRENT = _names(
    """
    RNN RNNCell RNNBase GRU GRUCell LSTM LSTMCell rnn_tanh rnn_relu rnn_tanh_cell
    rnn_relu_cell gru gru_cell lstm lstm_cell quantized_rnn_tanh_cell mkldnn_rnn_layer
    _cudnn_rnn
    """
)
"""Recurrent networks and their cells."""

MULTI_HEAD = _names(
    """
    MultiheadAttention multi_head_attention_forward _native_multi_head_attention
    _transformer_encoder_layer_fwd TransformerEncoderLayer TransformerDecoderLayer
    """
)
"""Attention with several heads, and the layers that have it in them."""

AUTOGRAD = _names(
    """
    backward grad jacobian jacrev jacfwd vjp jvp hessian requires_grad_ gradcheck
    functional_call autograd_grad grad_and_value linearize make_dual unpack_dual dual_level
    _softmax_backward_data _log_softmax_backward_data _sparse_softmax_backward_data
    """
)
"""Derivatives."""

NORM = _names(
    """
    layer_norm LayerNorm native_layer_norm rms_norm RMSNorm group_norm GroupNorm
    native_group_norm instance_norm InstanceNorm1d InstanceNorm2d batch_norm BatchNorm1d
    BatchNorm2d native_batch_norm _native_batch_norm_legit _batch_norm_impl_index
    _native_batch_norm_legit_functional _batch_norm_with_update cudnn_batch_norm
    _fused_rms_norm
    """
)
"""Normalisation."""
