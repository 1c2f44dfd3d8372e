// Meanings of the --config keys. A test checks that each key is listed.
#include "apps/mask_rcnn/key_reference.h"

#include <span>

namespace dtrain::mask_rcnn {
namespace {

constexpr KeyMeaning kOfData[] = {
    {"MODE_FPN", "bool", "feature pyramid (FPN); False: a C4 detector with a single feature map"},
    {"MODE_MASK", "bool", "predict masks: Mask R-CNN, else Faster R-CNN"},

    {"DATA.BASEDIR", "text", "folder with annotations/instances_SPLIT.json and the images in SPLIT/; as --data_dir"},
    {"DATA.TRAIN", "texts", "training splits; none: all whose names contain train"},
    {"DATA.VAL", "texts", "evaluation splits; none: all whose names contain val"},
    {"DATA.CLASS_NAMES", "texts", "names of the categories to keep, in class order; none: all"},
    {"DATA.FILTER_EMPTY_ANNOTATIONS", "bool", "exclude images without objects from training"},
    {"DATA.ABSOLUTE_COORD", "bool", "box coordinates in pixels, as in COCO; only True is supported"},
    {"DATA.NUM_CATEGORY", "int", "the annotations determine the number of categories"},
    {"DATA.NUM_WORKERS", "int", "--datasets_num_private_threads sets the loader threads"},

    {"PREPROC.TRAIN_SHORT_EDGE_SIZE", "int or two", "length of the shorter side in training, or its range"},
    {"PREPROC.TEST_SHORT_EDGE_SIZE", "int", "length of the shorter side in evaluation and prediction"},
    {"PREPROC.MAX_SIZE", "int", "maximum length of the longer side"},
    {"PREPROC.RESIZE_SCALE_DTYPE", "float64|float32",
     "precision of the resize scale: float64 as in torchvision 0.16 and later, float32 as in earlier versions"},
    {"PREPROC.ROUND_PIXELS", "bool", "round resized pixels to uint8, as OpenCV; torchvision keeps floats"},
    {"PREPROC.EXIF_ORIENTATION", "apply|ignore",
     "apply or ignore the EXIF orientation of JPEGs; as --exif_orientation"},
    {"PREPROC.PREDEFINED_PADDING", "bool", "pad images to PREPROC.PADDING_SHAPES and their transposes"},
    {"PREPROC.PADDING_SHAPES", "pairs", "heights and widths of the landscape canvases of PREPROC.PREDEFINED_PADDING"},
    {"PREPROC.PIXEL_MEAN", "three floats", "mean of red, green and blue for normalisation"},
    {"PREPROC.PIXEL_STD", "three floats", "standard deviation of red, green and blue for normalisation"},
    {"PREPROC.FLIP_PROBABILITY", "float", "probability of a horizontal flip in training"},
    {"PREPROC.BRIGHTNESS", "float", "maximum brightness change of a training image"},
    {"PREPROC.CONTRAST", "float", "maximum relative change of contrast"},
    {"PREPROC.SATURATION", "float", "maximum relative change of saturation"},
    {"PREPROC.HUE", "float", "maximum shift of hue, in turns"},
};

constexpr KeyMeaning kOfModel[] = {
    {"BACKBONE.WEIGHTS", "text", "file of initial weights; as --load"},
    {"BACKBONE.RESNET_NUM_BLOCKS", "four ints", "blocks per stage: [3,4,6,3] is ResNet-50"},
    {"BACKBONE.BOTTLENECK", "bool", "bottleneck blocks; False with [2,2,2,2]: ResNet-18"},
    {"BACKBONE.NORM", "FreezeBN|BN|SyncBN|GN|None",
     "normalisation of the backbone: frozen, per-device or synchronised batch norm, group norm, or none"},
    {"BACKBONE.FREEZE_AFFINE", "bool", "with FreezeBN: freeze scale and shift too"},
    {"BACKBONE.FREEZE_AT", "int", "freeze the stem and the stages up to this number; 0: none"},
    {"BACKBONE.TF_PAD_MODE", "bool", "pad strided convolutions as TensorFlow's SAME does"},
    {"BACKBONE.STRIDE_1X1", "bool", "stride in the first 1x1 convolution of a bottleneck, else in the 3x3 convolution"},

    {"FPN.NUM_CHANNEL", "int", "channels of the feature pyramid"},
    {"FPN.NORM", "None|GN", "normalisation of the feature pyramid"},
    {"FPN.CASCADE", "bool", "Cascade R-CNN: three box heads in sequence, each refining the boxes of the previous head"},
    {"FPN.PROPOSAL_MODE", "Level", "NMS per pyramid level; only Level is supported"},
    {"FPN.ANCHOR_STRIDES", "ints", "strides of the pyramid levels; only [4,8,16,32,64] is supported"},
    {"FPN.FRCNN_HEAD_FUNC", "text", "box head: fastrcnn_2fc_head, fastrcnn_4conv1fc_head or fastrcnn_4conv1fc_gn_head"},
    {"FPN.FRCNN_CONV_HEAD_DIM", "int", "channels of the box head's convolutions"},
    {"FPN.FRCNN_FC_HEAD_DIM", "int", "features of the box head's linear layers"},
    {"FPN.MRCNN_HEAD_FUNC", "text", "mask head: maskrcnn_up4conv_head or maskrcnn_up4conv_gn_head"},
    {"FPN.BOXCLASS_HEAD_FUNC", "text", "AWS Mask R-CNN's name of FPN.FRCNN_HEAD_FUNC, with boxclass_ for fastrcnn_"},
    {"FPN.BOXCLASS_CONV_HEAD_DIM", "int", "AWS Mask R-CNN's name of FPN.FRCNN_CONV_HEAD_DIM"},
    {"FPN.BOXCLASS_FC_HEAD_DIM", "int", "AWS Mask R-CNN's name of FPN.FRCNN_FC_HEAD_DIM"},
    {"MRCNN.HEAD_DIM", "int", "channels of the mask head"},
    {"MRCNN.ACCURATE_PASTE", "bool", "masks are always pasted with sub-pixel accuracy"},
    {"CASCADE.IOUS", "three floats", "foreground IoU threshold of each cascade head"},
    {"CASCADE.BBOX_REG_WEIGHTS", "three lists", "box regression weights of each cascade head"},
};

constexpr KeyMeaning kOfRegions[] = {
    {"RPN.ANCHOR_SIZES", "floats", "anchor size of each level"},
    {"RPN.ANCHOR_RATIOS", "floats", "anchor aspect ratios, height / width"},
    {"RPN.ANCHOR_STRIDE", "int", "anchor stride of a C4 detector; only 16 is supported"},
    {"RPN.UNQUANTIZED_ANCHOR", "bool", "keep fractional anchor coordinates instead of rounding to pixels"},
    {"RPN.POSITIVE_ANCHOR_THRESH", "float", "IoU above which an anchor is foreground"},
    {"RPN.NEGATIVE_ANCHOR_THRESH", "float", "IoU below which an anchor is background"},
    {"RPN.CROWD_OVERLAP_THRESH", "float", "crowds are ignored; only values above 1 are supported"},
    {"RPN.BATCH_PER_IM", "int", "anchors sampled per image for the RPN loss"},
    {"RPN.FG_RATIO", "float", "maximum fraction of foreground samples"},
    {"RPN.HEAD_DIM", "int", "channels of the RPN head of a C4 detector"},
    {"RPN.MIN_SIZE", "float", "minimum side of proposals in pixels; smaller ones are dropped"},
    {"RPN.PROPOSAL_NMS_THRESH", "float", "IoU threshold of non-maximum suppression (NMS) of proposals"},
    {"RPN.TOPK_PER_IMAGE", "bool", "top-k of proposals per image; only True is supported"},
    {"RPN.TRAIN_PER_LEVEL_PRE_NMS_TOPK", "int", "proposals per level before NMS, in training"},
    {"RPN.TRAIN_IMAGE_POST_NMS_TOPK", "int", "proposals per image after NMS, in training"},
    {"RPN.TRAIN_PER_LEVEL_NMS_TOPK", "int", "sets RPN.TRAIN_PER_LEVEL_PRE_NMS_TOPK and RPN.TRAIN_IMAGE_POST_NMS_TOPK"},
    {"RPN.TRAIN_PER_LEVEL_POST_NMS_TOPK", "int", "after NMS only the limit per image applies"},
    {"RPN.TRAIN_PRE_NMS_TOPK", "int", "proposals before NMS of a C4 detector, in training"},
    {"RPN.TRAIN_POST_NMS_TOPK", "int", "proposals after NMS of a C4 detector, in training"},
    {"RPN.TEST_PER_LEVEL_PRE_NMS_TOPK", "int", "proposals per level before NMS, in evaluation"},
    {"RPN.TEST_IMAGE_POST_NMS_TOPK", "int", "proposals per image after NMS, in evaluation"},
    {"RPN.TEST_PER_LEVEL_NMS_TOPK", "int", "sets RPN.TEST_PER_LEVEL_PRE_NMS_TOPK and RPN.TEST_IMAGE_POST_NMS_TOPK"},
    {"RPN.TEST_PER_LEVEL_POST_NMS_TOPK", "int", "after NMS only the limit per image applies"},
    {"RPN.TEST_PRE_NMS_TOPK", "int", "proposals before NMS of a C4 detector, in evaluation"},
    {"RPN.TEST_POST_NMS_TOPK", "int", "proposals after NMS of a C4 detector, in evaluation"},
    {"RPN.SLOW_ACCURATE_MASK", "bool", "masks are always cropped with sub-pixel accuracy"},

    {"FRCNN.BATCH_PER_IM", "int", "regions of interest (RoIs) sampled per image for the head losses"},
    {"FRCNN.FG_RATIO", "float", "maximum fraction of foreground samples"},
    {"FRCNN.FG_THRESH", "float", "IoU from which an RoI is foreground"},
    {"FRCNN.BBOX_REG_WEIGHTS", "four floats", "box regression weights"},
};

constexpr KeyMeaning kOfTraining[] = {
    {"TRAIN.BATCH_SIZE_PER_GPU", "int", "images per device and step; --batch_size takes precedence"},
    {"TRAIN.BASE_LR", "float",
     "learning rate at a global batch of TRAIN.LR_REFERENCE_BATCH, scaled linearly with the batch"},
    {"TRAIN.LR_REFERENCE_BATCH", "int", "global batch size that TRAIN.BASE_LR refers to"},
    {"TRAIN.LR_SCHEDULE", "1x to 9x or ints",
     "steps at a global batch of 8 after which the learning rate is divided by 10; the last is the end of training"},
    {"TRAIN.LR_EPOCH_SCHEDULE", "pairs",
     "pairs of epoch and learning-rate factor from there on; the last pair, with None, is the end of training"},
    {"TRAIN.WARMUP", "int",
     "steps of linear learning-rate warm-up; with the presets torchvision and aws the default ends within the first "
     "epoch, if that is shorter"},
    {"TRAIN.WARMUP_STEPS", "int", "AWS Mask R-CNN's name of TRAIN.WARMUP"},
    {"TRAIN.WARMUP_INIT_LR", "float", "learning rate of the first step; with the preset aws, one eighth of it"},
    {"TRAIN.MOMENTUM", "float", "momentum of SGD"},
    {"TRAIN.WEIGHT_DECAY", "float", "weight decay"},
    {"TRAIN.DECAY_BIASES", "bool", "apply weight decay to biases and normalisation parameters too"},
    {"TRAIN.GRADIENT_CLIP", "float", "clip the global norm of the gradient; 0: off"},
    {"TRAIN.STEPS_PER_EPOCH", "int", "steps per epoch, instead of TRAIN.IMAGES_PER_EPOCH"},
    {"TRAIN.IMAGES_PER_EPOCH", "int",
     "images per epoch; the defaults are for COCO, other data sets default to one pass over the data"},
    {"TRAIN.EVAL_PERIOD", "int", "epochs between evaluations; 0: only at the end"},
    {"TRAIN.CHECKPOINT_PERIOD", "int", "epochs between checkpoints; 0: only at the end"},
    {"TRAIN.SEED", "int", "seed of the run; none: --tf_random_seed"},
    {"TRAIN.STARTING_EPOCH", "int",
     "first epoch of the run; above 1, train_dir or --load must have a checkpoint of that epoch or a later one, which "
     "is resumed"},
    {"TRAIN.SHOULD_STOP", "bool", "use TEST.BOX_TARGET and TEST.MASK_TARGET to stop early; only False is supported"},
    {"TRAIN.NUM_GPUS", "int", "every process is a rank"},
    {"TRAIN.BACKBONE_NCHW", "bool", "the layout is NHWC"},
    {"TRAIN.FPN_NCHW", "bool", "the layout is NHWC"},
    {"TRAIN.RPN_NCHW", "bool", "the layout is NHWC"},
    {"TRAIN.MASK_NCHW", "bool", "the layout is NHWC"},
    {"TRAINER", "replicated|horovod", "every process is a rank"},

    {"TEST.BATCH_SIZE_PER_GPU", "int", "images per device in evaluation; --eval_batch_size takes precedence"},
    {"TEST.FRCNN_NMS_THRESH", "float", "IoU threshold of per-class non-maximum suppression (NMS)"},
    {"TEST.RESULT_SCORE_THRESH", "float", "minimum score of detections"},
    {"TEST.RESULT_SCORE_THRESH_VIS", "float", "minimum score of detections in pictures"},
    {"TEST.RESULTS_PER_IM", "int", "maximum number of detections per image"},
    {"TEST.BOX_TARGET", "float", "box AP at which training stops, together with TEST.MASK_TARGET; 0: none"},
    {"TEST.MASK_TARGET", "float", "mask AP at which training stops, together with TEST.BOX_TARGET; 0: none"},
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
