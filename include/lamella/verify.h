// What checks a user's functions and operators: gradcheck, check_operator.
#pragma once

#include "lamella/lamella.h"
#include "lamella/verify/check_operator.h"
#include "lamella/verify/custom_rule.h"
#include "lamella/verify/gradcheck.h"
