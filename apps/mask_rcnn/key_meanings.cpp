// What the keys of --config mean. A test holds that each key is here.
#include "apps/mask_rcnn/key_reference.h"

#include <span>

namespace dtrain::mask_rcnn {
namespace {

constexpr KeyMeaning kOfData[] = {
    {"MODE_FPN", "bool", "a feature pyramid; False makes a detector of one map, known as C4"},
    {"MODE_MASK", "bool", "masks besides boxes: Mask R-CNN, else Faster R-CNN"},

    {"DATA.BASEDIR", "text", "folder with annotations/instances_SPLIT.json and the images in SPLIT/; as --data_dir"},
    {"DATA.TRAIN", "texts", "the splits to train on; none: those whose names contain train"},
    {"DATA.VAL", "texts", "the splits to evaluate; none: those whose names contain val"},
    {"DATA.CLASS_NAMES", "texts", "names of the categories to keep, in the order of their classes; none: all"},
    {"DATA.FILTER_EMPTY_ANNOTATIONS", "bool", "leave images without objects out of the training"},
    {"DATA.ABSOLUTE_COORD", "bool", "boxes are in pixels, as COCO's: only True is supported"},
    {"DATA.NUM_CATEGORY", "int", "categories: the annotations say it"},
    {"DATA.NUM_WORKERS", "int", "threads that read: --datasets_num_private_threads sets them"},

    {"PREPROC.TRAIN_SHORT_EDGE_SIZE", "int or two",
     "length of the shorter side in training, or the least and the most of it"},
    {"PREPROC.TEST_SHORT_EDGE_SIZE", "int", "length of the shorter side in evaluation and prediction"},
    {"PREPROC.MAX_SIZE", "int", "the most that the longer side becomes"},
    {"PREPROC.RESIZE_SCALE_DTYPE", "float64|float32",
     "precision of the scale that images are resized by: float64 as torchvision from 0.16 on, float32 as before"},
    {"PREPROC.ROUND_PIXELS", "bool", "resized pixels are rounded to uint8, as OpenCV does; torchvision keeps floats"},
    {"PREPROC.EXIF_ORIENTATION", "apply|ignore",
     "whether JPEGs are turned by their EXIF orientation; as --exif_orientation"},
    {"PREPROC.PREDEFINED_PADDING", "bool", "pad images to PREPROC.PADDING_SHAPES and their transposes"},
    {"PREPROC.PADDING_SHAPES", "pairs", "heights and widths of the landscape canvases of PREPROC.PREDEFINED_PADDING"},
    {"PREPROC.PIXEL_MEAN", "three floats", "mean of red, green and blue that pixels are normalised by"},
    {"PREPROC.PIXEL_STD", "three floats", "standard deviation of red, green and blue that pixels are normalised by"},
    {"PREPROC.FLIP_PROBABILITY", "float", "probability of a horizontal flip in training"},
    {"PREPROC.BRIGHTNESS", "float", "the most that is added to or taken from the brightness of a training image"},
    {"PREPROC.CONTRAST", "float", "the most that its contrast changes, as a share"},
    {"PREPROC.SATURATION", "float", "the most that its saturation changes, as a share"},
    {"PREPROC.HUE", "float", "the most that its hue turns, in turns"},
};

constexpr KeyMeaning kOfModel[] = {
    {"BACKBONE.WEIGHTS", "text", "file of weights to begin with; as --load"},
    {"BACKBONE.RESNET_NUM_BLOCKS", "four ints", "blocks of the stages: [3,4,6,3] is ResNet-50"},
    {"BACKBONE.BOTTLENECK", "bool", "blocks of three convolutions; False, with [2,2,2,2], makes ResNet-18"},
    {"BACKBONE.NORM", "FreezeBN|BN|SyncBN|GN|None",
     "norm of the backbone: frozen, per-device, synchronised or group normalisation, or none"},
    {"BACKBONE.FREEZE_AFFINE", "bool", "with FreezeBN: scale and shift of the norms are constant, too"},
    {"BACKBONE.FREEZE_AT", "int", "the stem and the stages up to this number are constant; 0: none"},
    {"BACKBONE.TF_PAD_MODE", "bool", "pad strided convolutions as TensorFlow's SAME does"},
    {"BACKBONE.STRIDE_1X1", "bool", "the stride of a block is in its first 1x1 convolution, else in the 3x3 one"},

    {"FPN.NUM_CHANNEL", "int", "channels of the pyramid"},
    {"FPN.NORM", "None|GN", "norm of the pyramid"},
    {"FPN.CASCADE", "bool", "Cascade R-CNN: three box heads, each of which refines the boxes of the one before"},
    {"FPN.PROPOSAL_MODE", "Level", "NMS is applied level by level: only Level is supported"},
    {"FPN.ANCHOR_STRIDES", "ints", "strides of the levels: only [4,8,16,32,64] is supported"},
    {"FPN.FRCNN_HEAD_FUNC", "text", "box head: fastrcnn_2fc_head, fastrcnn_4conv1fc_head or fastrcnn_4conv1fc_gn_head"},
    {"FPN.FRCNN_CONV_HEAD_DIM", "int", "channels of the convolutions of the box head"},
    {"FPN.FRCNN_FC_HEAD_DIM", "int", "features of the linear layers of the box head"},
    {"FPN.MRCNN_HEAD_FUNC", "text", "mask head: maskrcnn_up4conv_head or maskrcnn_up4conv_gn_head"},
    {"FPN.BOXCLASS_HEAD_FUNC", "text", "AWS Mask R-CNN's name of FPN.FRCNN_HEAD_FUNC, with boxclass_ for fastrcnn_"},
    {"FPN.BOXCLASS_CONV_HEAD_DIM", "int", "AWS Mask R-CNN's name of FPN.FRCNN_CONV_HEAD_DIM"},
    {"FPN.BOXCLASS_FC_HEAD_DIM", "int", "AWS Mask R-CNN's name of FPN.FRCNN_FC_HEAD_DIM"},
    {"MRCNN.HEAD_DIM", "int", "channels of the mask head"},
    {"MRCNN.ACCURATE_PASTE", "bool", "masks are pasted to fractions of a pixel in any case"},
    {"CASCADE.IOUS", "three floats", "IoU from which a region is an object to each head of a cascade"},
    {"CASCADE.BBOX_REG_WEIGHTS", "three lists", "weights of the box regression of each head of a cascade"},
};

constexpr KeyMeaning kOfRegions[] = {
    {"RPN.ANCHOR_SIZES", "floats", "side of the anchors, for each level"},
    {"RPN.ANCHOR_RATIOS", "floats", "height to width of the anchors"},
    {"RPN.ANCHOR_STRIDE", "int", "stride of the single map without a pyramid: only 16 is supported"},
    {"RPN.UNQUANTIZED_ANCHOR", "bool", "anchors are not rounded to whole pixels"},
    {"RPN.POSITIVE_ANCHOR_THRESH", "float", "IoU from which an anchor is an object"},
    {"RPN.NEGATIVE_ANCHOR_THRESH", "float", "IoU below which it is background"},
    {"RPN.CROWD_OVERLAP_THRESH", "float", "crowds are left out: only values above 1 are supported"},
    {"RPN.BATCH_PER_IM", "int", "anchors sampled per image for the RPN loss"},
    {"RPN.FG_RATIO", "float", "largest fraction of foreground samples among them"},
    {"RPN.HEAD_DIM", "int", "channels of the proposal network without a pyramid"},
    {"RPN.MIN_SIZE", "float", "proposals with a shorter side are left out, in pixels"},
    {"RPN.PROPOSAL_NMS_THRESH", "float", "IoU threshold of non-maximum suppression (NMS) of proposals"},
    {"RPN.TOPK_PER_IMAGE", "bool", "proposals are limited by image: only True is supported"},
    {"RPN.TRAIN_PER_LEVEL_PRE_NMS_TOPK", "int", "proposals of a level before NMS, in training"},
    {"RPN.TRAIN_IMAGE_POST_NMS_TOPK", "int", "proposals of an image after NMS, in training"},
    {"RPN.TRAIN_PER_LEVEL_NMS_TOPK", "int", "sets RPN.TRAIN_PER_LEVEL_PRE_NMS_TOPK and RPN.TRAIN_IMAGE_POST_NMS_TOPK"},
    {"RPN.TRAIN_PER_LEVEL_POST_NMS_TOPK", "int", "after NMS only the limit of the image counts"},
    {"RPN.TRAIN_PRE_NMS_TOPK", "int", "proposals before NMS without a pyramid, in training"},
    {"RPN.TRAIN_POST_NMS_TOPK", "int", "proposals after NMS without a pyramid, in training"},
    {"RPN.TEST_PER_LEVEL_PRE_NMS_TOPK", "int", "proposals of a level before NMS, in evaluation"},
    {"RPN.TEST_IMAGE_POST_NMS_TOPK", "int", "proposals of an image after NMS, in evaluation"},
    {"RPN.TEST_PER_LEVEL_NMS_TOPK", "int", "sets RPN.TEST_PER_LEVEL_PRE_NMS_TOPK and RPN.TEST_IMAGE_POST_NMS_TOPK"},
    {"RPN.TEST_PER_LEVEL_POST_NMS_TOPK", "int", "after NMS only the limit of the image counts"},
    {"RPN.TEST_PRE_NMS_TOPK", "int", "proposals before NMS without a pyramid, in evaluation"},
    {"RPN.TEST_POST_NMS_TOPK", "int", "proposals after NMS without a pyramid, in evaluation"},
    {"RPN.SLOW_ACCURATE_MASK", "bool", "masks are cropped to fractions of a pixel in any case"},

    {"FRCNN.BATCH_PER_IM", "int", "regions sampled per image for the losses of the heads"},
    {"FRCNN.FG_RATIO", "float", "largest fraction of foreground samples among them"},
    {"FRCNN.FG_THRESH", "float", "IoU from which a region is an object"},
    {"FRCNN.BBOX_REG_WEIGHTS", "four floats", "weights of the box regression"},
};

constexpr KeyMeaning kOfTraining[] = {
    {"TRAIN.BATCH_SIZE_PER_GPU", "int", "images of a device and step; --batch_size takes precedence"},
    {"TRAIN.BASE_LR", "float",
     "learning rate for TRAIN.LR_REFERENCE_BATCH images; it grows in proportion to the batch"},
    {"TRAIN.LR_REFERENCE_BATCH", "int", "images of all devices that TRAIN.BASE_LR is for"},
    {"TRAIN.LR_SCHEDULE", "1x to 9x or ints",
     "steps of 8 images after which the rate drops to a tenth, and of the end"},
    {"TRAIN.LR_EPOCH_SCHEDULE", "pairs", "epochs with the factor of the rate from there on, and the end with None"},
    {"TRAIN.WARMUP", "int",
     "steps over which the rate grows; with the presets torchvision and aws the default ends within a shorter first "
     "epoch"},
    {"TRAIN.WARMUP_STEPS", "int", "AWS Mask R-CNN's name of TRAIN.WARMUP"},
    {"TRAIN.WARMUP_INIT_LR", "float", "learning rate of the first step; with the preset aws an eighth of it"},
    {"TRAIN.MOMENTUM", "float", "momentum of the update"},
    {"TRAIN.WEIGHT_DECAY", "float", "weight decay"},
    {"TRAIN.DECAY_BIASES", "bool", "biases and norms decay, too"},
    {"TRAIN.GRADIENT_CLIP", "float", "the gradient is scaled down to this norm; 0: it is not"},
    {"TRAIN.STEPS_PER_EPOCH", "int", "steps of an epoch, in place of TRAIN.IMAGES_PER_EPOCH"},
    {"TRAIN.IMAGES_PER_EPOCH", "int",
     "images of an epoch; by default one pass over the data, and these with COCO itself"},
    {"TRAIN.EVAL_PERIOD", "int", "epochs between evaluations; 0: at the end alone"},
    {"TRAIN.CHECKPOINT_PERIOD", "int", "epochs between checkpoints; 0: at the end alone"},
    {"TRAIN.SEED", "int", "seed of the run; none: that of --tf_random_seed"},
    {"TRAIN.STARTING_EPOCH", "int", "a run continues where its checkpoint was made: only 1 is supported"},
    {"TRAIN.SHOULD_STOP", "bool", "training ends by TEST.BOX_TARGET and TEST.MASK_TARGET: only False is supported"},
    {"TRAIN.NUM_GPUS", "int", "the number of ranks is that of the processes"},
    {"TRAIN.BACKBONE_NCHW", "bool", "the layout is NHWC"},
    {"TRAIN.FPN_NCHW", "bool", "the layout is NHWC"},
    {"TRAIN.RPN_NCHW", "bool", "the layout is NHWC"},
    {"TRAIN.MASK_NCHW", "bool", "the layout is NHWC"},
    {"TRAINER", "replicated|horovod", "the number of ranks is that of the processes"},

    {"TEST.BATCH_SIZE_PER_GPU", "int", "images of a device in evaluation; --eval_batch_size takes precedence"},
    {"TEST.FRCNN_NMS_THRESH", "float", "IoU threshold of non-maximum suppression (NMS) of the boxes of a class"},
    {"TEST.RESULT_SCORE_THRESH", "float", "least score of what is found"},
    {"TEST.RESULT_SCORE_THRESH_VIS", "float", "least score of what is drawn"},
    {"TEST.RESULTS_PER_IM", "int", "the most that is found in an image"},
    {"TEST.BOX_TARGET", "float", "AP of boxes at which training ends, once the masks' is reached, too; 0: none"},
    {"TEST.MASK_TARGET", "float", "AP of masks at which training ends, once the boxes' is reached, too; 0: none"},
};

}  // namespace

std::vector<KeyMeaning> key_meanings() {
  std::vector<KeyMeaning> all;
  using Some = std::span<const KeyMeaning>;
  for (const Some some : {Some(kOfData), Some(kOfModel), Some(kOfRegions), Some(kOfTraining)})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace dtrain::mask_rcnn
