// Learned policies of AutoAugment, as in torchvision.
#include <array>

#include "dtrain/core/error.h"
#include "dtrain/data/auto_augment.h"

namespace dtrain::data {
namespace {

using enum ImageOp;
using Pairs = std::array<PolicyChange, 2 * kPolicyPairs>;

constexpr Pairs kImagenet{{
    {posterize, 0.4f, 8}, {rotate, 0.6f, 9},    {solarize, 0.6f, 5},  {auto_contrast, 0.6f, -1}, {equalize, 0.8f, -1},
    {equalize, 0.6f, -1}, {posterize, 0.6f, 7}, {posterize, 0.6f, 6}, {equalize, 0.4f, -1},      {solarize, 0.2f, 4},
    {equalize, 0.4f, -1}, {rotate, 0.8f, 8},    {solarize, 0.6f, 3},  {equalize, 0.6f, -1},      {posterize, 0.8f, 5},
    {equalize, 1, -1},    {rotate, 0.2f, 3},    {solarize, 0.6f, 8},  {equalize, 0.6f, -1},      {posterize, 0.4f, 6},
    {rotate, 0.8f, 8},    {color, 0.4f, 0},     {rotate, 0.4f, 9},    {equalize, 0.6f, -1},      {equalize, 0, -1},
    {equalize, 0.8f, -1}, {invert, 0.6f, -1},   {equalize, 1, -1},    {color, 0.6f, 4},          {contrast, 1, 8},
    {rotate, 0.8f, 8},    {color, 1, 2},        {color, 0.8f, 8},     {solarize, 0.8f, 7},       {sharpness, 0.4f, 7},
    {invert, 0.6f, -1},   {shear_x, 0.6f, 5},   {equalize, 1, -1},    {color, 0.4f, 0},          {equalize, 0.6f, -1},
    {equalize, 0.4f, -1}, {solarize, 0.2f, 4},  {solarize, 0.6f, 5},  {auto_contrast, 0.6f, -1}, {invert, 0.6f, -1},
    {equalize, 1, -1},    {color, 0.6f, 4},     {contrast, 1, 8},     {equalize, 0.8f, -1},      {equalize, 0.6f, -1},
}};

constexpr Pairs kCifar10{{
    {invert, 0.1f, -1},        {contrast, 0.2f, 6},       {rotate, 0.7f, 2},      {translate_x, 0.3f, 9},
    {sharpness, 0.8f, 1},      {sharpness, 0.9f, 3},      {shear_y, 0.5f, 8},     {translate_y, 0.7f, 9},
    {auto_contrast, 0.5f, -1}, {equalize, 0.9f, -1},      {shear_y, 0.2f, 7},     {posterize, 0.3f, 7},
    {color, 0.4f, 3},          {brightness, 0.6f, 7},     {sharpness, 0.3f, 9},   {brightness, 0.7f, 9},
    {equalize, 0.6f, -1},      {equalize, 0.5f, -1},      {contrast, 0.6f, 7},    {sharpness, 0.6f, 5},
    {color, 0.7f, 7},          {translate_x, 0.5f, 8},    {equalize, 0.3f, -1},   {auto_contrast, 0.4f, -1},
    {translate_y, 0.4f, 3},    {sharpness, 0.2f, 6},      {brightness, 0.9f, 6},  {color, 0.2f, 8},
    {solarize, 0.5f, 2},       {invert, 0, -1},           {equalize, 0.2f, -1},   {auto_contrast, 0.6f, -1},
    {equalize, 0.2f, -1},      {equalize, 0.6f, -1},      {color, 0.9f, 9},       {equalize, 0.6f, -1},
    {auto_contrast, 0.8f, -1}, {solarize, 0.2f, 8},       {brightness, 0.1f, 3},  {color, 0.7f, 0},
    {solarize, 0.4f, 5},       {auto_contrast, 0.9f, -1}, {translate_y, 0.9f, 9}, {translate_y, 0.7f, 9},
    {auto_contrast, 0.9f, -1}, {solarize, 0.8f, 3},       {equalize, 0.8f, -1},   {invert, 0.1f, -1},
    {translate_y, 0.7f, 9},    {auto_contrast, 0.9f, -1},
}};

constexpr Pairs kSvhn{{
    {shear_x, 0.9f, 4},   {invert, 0.2f, -1},        {shear_y, 0.9f, 8},   {invert, 0.7f, -1},
    {equalize, 0.6f, -1}, {solarize, 0.6f, 6},       {invert, 0.9f, -1},   {equalize, 0.6f, -1},
    {equalize, 0.6f, -1}, {rotate, 0.9f, 3},         {shear_x, 0.9f, 4},   {auto_contrast, 0.8f, -1},
    {shear_y, 0.9f, 8},   {invert, 0.4f, -1},        {shear_y, 0.9f, 5},   {solarize, 0.2f, 6},
    {invert, 0.9f, -1},   {auto_contrast, 0.8f, -1}, {equalize, 0.6f, -1}, {rotate, 0.9f, 3},
    {shear_x, 0.9f, 4},   {solarize, 0.3f, 3},       {shear_y, 0.8f, 8},   {invert, 0.7f, -1},
    {equalize, 0.9f, -1}, {translate_y, 0.6f, 6},    {invert, 0.9f, -1},   {equalize, 0.6f, -1},
    {contrast, 0.3f, 3},  {rotate, 0.8f, 4},         {invert, 0.8f, -1},   {translate_y, 0, 2},
    {shear_y, 0.7f, 6},   {solarize, 0.4f, 8},       {invert, 0.6f, -1},   {rotate, 0.8f, 4},
    {shear_y, 0.3f, 7},   {translate_x, 0.9f, 3},    {shear_x, 0.1f, 6},   {invert, 0.6f, -1},
    {solarize, 0.7f, 2},  {translate_y, 0.6f, 7},    {shear_y, 0.8f, 4},   {invert, 0.8f, -1},
    {shear_x, 0.7f, 9},   {translate_y, 0.8f, 3},    {shear_y, 0.8f, 5},   {auto_contrast, 0.7f, -1},
    {shear_x, 0.7f, 2},   {invert, 0.1f, -1},
}};

}  // namespace

std::span<const PolicyChange> policy_changes(AugmentPolicy policy) {
  switch (policy) {
    case AugmentPolicy::imagenet:
      return kImagenet;
    case AugmentPolicy::cifar10:
      return kCifar10;
    case AugmentPolicy::svhn:
      return kSvhn;
    default:
      throw Error("augmentation policy without sub-policies");
  }
}

}  // namespace dtrain::data
