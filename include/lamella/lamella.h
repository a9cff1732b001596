// The whole library for users: tensors, operators, transforms.
#pragma once

#include "lamella/core/generator.h"
#include "lamella/dispatch/call.h"
#include "lamella/ops/functions.h"
#include "lamella/transforms/anomaly.h"
#include "lamella/transforms/autograd.h"
#include "lamella/transforms/checkpoint.h"
#include "lamella/transforms/custom.h"
#include "lamella/transforms/grad.h"
#include "lamella/transforms/inference.h"
#include "lamella/transforms/jacobian.h"
#include "lamella/transforms/jvp.h"
#include "lamella/transforms/linearize.h"
#include "lamella/transforms/saved_hooks.h"
#include "lamella/transforms/stop_gradient.h"
#include "lamella/transforms/tree_jacobian.h"
#include "lamella/transforms/vmap.h"
