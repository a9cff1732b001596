// What checks a user's functions and operators: gradcheck, check_operator.
#pragma once

#include "lamella/lamella.h"
#include "lamella/verify/gradcheck/custom_rule.h"
#include "lamella/verify/gradcheck/gradcheck.h"
#include "lamella/verify/run/check_operator.h"
