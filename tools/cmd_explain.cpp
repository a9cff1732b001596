// `lamella explain`: where every operator of an expression goes, and why.
#include <iostream>

#include "lamella/dispatch/trace.h"
#include "lamella/transforms/lanes.h"
#include "lamella/transforms/vmap.h"
#include "lamella/verify/text/expression.h"

#include "command_line.h"
#include "commands.h"
#include "kernel_option.h"
#include "plugin.h"

int main_explain(int argc, char** argv) {
  lamella::tools::CommandLine app(
      "Evaluates an expression and prints, for every operator, each argument's keys, the thread's masks and "
      "the chosen kernel",
      "lamella explain");
  std::string expression, dtype_name = "f32";
  std::vector<std::string> shapes, kernels, plugins;
  app.add_option("expression", expression,
                 "e.g. 'vmap(grad(sum(sin(x) * y)), in=(0, None))' (grammar: docs/expressions.md)")
      ->required();
  app.add_option("--shapes", shapes, "variables: x=8x3 y=3 (s= is rank 0)")->expected(1, 64);
  app.add_option("--dtype", dtype_name, "dtype of the variables");
  app.add_option("--load", plugins, "shared library that brings operators or kernels")
      ->allow_extra_args(false);
  lamella::tools::add_kernel_option(app, kernels);
  app.read(argc, argv);
  for (const std::string& file : plugins) lamella::tools::load_plugin(file);
  lamella::tools::choose_kernels(kernels);
  lamella::DType dtype;
  LAMELLA_CHECK(lamella::parse_dtype(dtype_name, dtype), Usage, "--dtype: there is no dtype \"{}\"",
                dtype_name);
  const lamella::verify::Bindings variables = lamella::verify::parse_shapes(shapes, dtype);
  lamella::Trace trace;
  const int64_t before = lamella::loop_fallbacks();
  lamella::Tensor result;
  {
    const lamella::ScopedObserver scope(&trace);
    result = lamella::verify::evaluate(expression, variables);
  }
  std::cout << trace.text() << trace.calls() << " calls, " << trace.kernels() << " kernels, "
            << lamella::loop_fallbacks() - before << " fallbacks to the loop\n= " << str(result) << '\n';
  return 0;
}
