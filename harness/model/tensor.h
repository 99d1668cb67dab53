// Tensors in the model layer: the data itself lives one layer below, where the adapter SDK can reach it too.
#pragma once

#include "harness/num/tensor_data.h"
