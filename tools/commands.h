// The commands of the program; each returns its exit status (0 fine, 1 something failed, 2 usage or set-up).
#pragma once

int main_verify(int argc, char** argv);
int main_merge(int argc, char** argv);
int main_mutate(int argc, char** argv);
int main_answers(int argc, char** argv);
int main_museum(int argc, char** argv);
int main_reference(int argc, char** argv);
int main_sensitivity(int argc, char** argv);
int main_tolerances(int argc, char** argv);
int main_report(int argc, char** argv);
int main_bench(int argc, char** argv);
int main_explain(int argc, char** argv);
int main_ops(int argc, char** argv);
int main_accept(int argc, char** argv);
int main_doctor(int argc, char** argv);
