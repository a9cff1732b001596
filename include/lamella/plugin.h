// What a plug-in's author needs: operators, columns and types to register, and what rules are written in.
// With laws and mutants of one's own besides: lamella/verify/case/law.h, lamella/mutate/mutants.h.
#pragma once

#include "lamella/core/layout.h"
#include "lamella/dispatch/column.h"
#include "lamella/dispatch/frame_copy.h"
#include "lamella/dispatch/plugin.h"
#include "lamella/dispatch/table.h"
#include "lamella/dispatch/types.h"
#include "lamella/lamella.h"
#include "lamella/ops/batch.h"
#include "lamella/ops/layout.h"
