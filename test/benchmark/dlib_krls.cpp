// Copyright 2026 the kernel_constrained authors
// SPDX-License-Identifier: Apache-2.0
//
// Learns a stream with dlib's krls and prints: seconds a sample, mean squared error on the test
// points, size of the dictionary, version of dlib. Standard input holds doubles: bandwidth,
// tolerance, inputs, samples, test points; then a row (inputs, target) for each of both.

#include <dlib/revision.h>
#include <dlib/svm.h>

#include <chrono>
#include <cstddef>
#include <iostream>
#include <utility>
#include <vector>

template<int inputs>
using Rows = std::vector<std::pair<dlib::matrix<double, inputs, 1>, double>>;

double number()
{
  double value;
  std::cin.read(reinterpret_cast<char *>(&value), sizeof value);
  return value;
}

template<int inputs>
Rows<inputs> rows(std::size_t count)
{
  Rows<inputs> result(count);
  for (auto & [x, y] : result) {
    for (int i = 0; i < inputs; ++i) {x(i) = number();}
    y = number();
  }
  return result;
}

template<int inputs>
void run(double bandwidth, double tolerance, std::size_t samples, std::size_t tests)
{
  using Kernel = dlib::radial_basis_kernel<dlib::matrix<double, inputs, 1>>;
  const auto stream = rows<inputs>(samples), test = rows<inputs>(tests);
  dlib::krls<Kernel> learner(Kernel(0.5 / (bandwidth * bandwidth)), tolerance);

  const auto begun = std::chrono::steady_clock::now();
  for (const auto & [x, y] : stream) {learner.train(x, y);}
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begun;

  double error = 0.0;
  for (const auto & [x, y] : test) {error += (learner(x) - y) * (learner(x) - y) / tests;}
  std::cout << time.count() / samples << ' ' << error << ' ' << learner.dictionary_size() << ' '
            << DLIB_MAJOR_VERSION << '.' << DLIB_MINOR_VERSION << '\n';
}

int main()
{
  const double bandwidth = number(), tolerance = number();
  const int inputs = number();
  const std::size_t samples = number(), tests = number();
  if (inputs == 1) {run<1>(bandwidth, tolerance, samples, tests);}
  if (inputs == 2) {run<2>(bandwidth, tolerance, samples, tests);}
}
